// The field macros' machinery: declares fields with default initialisers and Boost.Hana accessors for them.
#pragma once
#include <boost/hana/accessors.hpp>
#include <boost/hana/pair.hpp>
#include <boost/hana/string.hpp>
#include <boost/hana/tuple.hpp>
#include <utility>

#include "tigon/axis.hpp"

namespace tigon::detail {

template <FixedString Name, std::size_t... I>
constexpr auto hana_name(std::index_sequence<I...>) {
  return boost::hana::string_c<Name.text[I]...>;
}
template <FixedString Name>
constexpr auto hana_name() {
  return hana_name<Name>(std::make_index_sequence<sizeof(Name.text) - 1>{});
}

template <class Pointer, Pointer pointer>
struct Member {
  template <class T>
  constexpr auto& operator()(T& object) const {
    return object.*pointer;
  }
};

}  // namespace tigon::detail

#define TIGON_PARENTHESES ()
#define TIGON_AGAIN_1(...) TIGON_AGAIN_2(TIGON_AGAIN_2(TIGON_AGAIN_2(TIGON_AGAIN_2(__VA_ARGS__))))
#define TIGON_AGAIN_2(...) TIGON_AGAIN_3(TIGON_AGAIN_3(TIGON_AGAIN_3(TIGON_AGAIN_3(__VA_ARGS__))))
#define TIGON_AGAIN_3(...) TIGON_AGAIN_4(TIGON_AGAIN_4(TIGON_AGAIN_4(TIGON_AGAIN_4(__VA_ARGS__))))
#define TIGON_AGAIN_4(...) __VA_ARGS__
// macro(context, field) for each field, up to 64 of them.
#define TIGON_FOR_EACH(macro, context, ...) __VA_OPT__(TIGON_AGAIN_1(TIGON_FOR_EACH_STEP(macro, context, __VA_ARGS__)))
#define TIGON_FOR_EACH_STEP(macro, context, field, ...) \
  macro(context, field) __VA_OPT__(TIGON_FOR_EACH_NEXT TIGON_PARENTHESES(macro, context, __VA_ARGS__))
#define TIGON_FOR_EACH_NEXT() TIGON_FOR_EACH_STEP
// The same, separated by commas.
#define TIGON_LIST(macro, context, ...) __VA_OPT__(TIGON_AGAIN_1(TIGON_LIST_STEP(macro, context, __VA_ARGS__)))
#define TIGON_LIST_STEP(macro, context, field, ...) \
  macro(context, field) __VA_OPT__(, TIGON_LIST_NEXT TIGON_PARENTHESES(macro, context, __VA_ARGS__))
#define TIGON_LIST_NEXT() TIGON_LIST_STEP

// A field is (type, name); the type may hold up to six commas of its own.
#define TIGON_COUNT(...) TIGON_COUNT_AT(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define TIGON_COUNT_AT(a, b, c, d, e, f, g, h, count, ...) count
#define TIGON_JOIN(a, b) TIGON_JOIN_NOW(a, b)
#define TIGON_JOIN_NOW(a, b) a##b
#define TIGON_NAME_2(a, name) name
#define TIGON_NAME_3(a, b, name) name
#define TIGON_NAME_4(a, b, c, name) name
#define TIGON_NAME_5(a, b, c, d, name) name
#define TIGON_NAME_6(a, b, c, d, e, name) name
#define TIGON_NAME_7(a, b, c, d, e, f, name) name
#define TIGON_NAME_8(a, b, c, d, e, f, g, name) name
#define TIGON_TYPE_2(a, name) a
#define TIGON_TYPE_3(a, b, name) a, b
#define TIGON_TYPE_4(a, b, c, name) a, b, c
#define TIGON_TYPE_5(a, b, c, d, name) a, b, c, d
#define TIGON_TYPE_6(a, b, c, d, e, name) a, b, c, d, e
#define TIGON_TYPE_7(a, b, c, d, e, f, name) a, b, c, d, e, f
#define TIGON_TYPE_8(a, b, c, d, e, f, g, name) a, b, c, d, e, f, g
#define TIGON_FIELD_NAME(...) TIGON_JOIN(TIGON_NAME_, TIGON_COUNT(__VA_ARGS__))(__VA_ARGS__)
#define TIGON_FIELD_TYPE(...) TIGON_JOIN(TIGON_TYPE_, TIGON_COUNT(__VA_ARGS__))(__VA_ARGS__)

#define TIGON_DECLARE(context, field) TIGON_FIELD_TYPE field TIGON_FIELD_NAME field{};
#define TIGON_DECLARE_OUTPUT(context, field) \
  ::tigon::detail::OutputField<TIGON_FIELD_TYPE field> TIGON_FIELD_NAME field{};
#define TIGON_STRING(name) TIGON_STRING_NOW(name)
#define TIGON_STRING_NOW(name) #name
#define TIGON_ACCESSOR(context, field) TIGON_ACCESSOR_OF(context, TIGON_FIELD_NAME field)
#define TIGON_ACCESSOR_OF(context, name) TIGON_ACCESSOR_NOW(context, name)
#define TIGON_ACCESSOR_NOW(context, name)                       \
  ::boost::hana::make_pair(::tigon::detail::hana_name<#name>(), \
                           ::tigon::detail::Member<decltype(&context::name), &context::name>{})
// Besides Hana's accessors, which cost nothing until they are used, the two visits that the library itself makes:
// written out by the preprocessor they compile several times faster than a walk over a Hana sequence.
#define TIGON_VISIT(context, field) visit_field(TIGON_STRING(TIGON_FIELD_NAME field), object.TIGON_FIELD_NAME field);
#define TIGON_VISIT_PAIR(context, field) visit_pair(object.TIGON_FIELD_NAME field, like.TIGON_FIELD_NAME field);
#define TIGON_ACCESSORS(Name, ...)                                                                                     \
  struct hana_accessors_impl {                                                                                         \
    static constexpr auto apply() { return ::boost::hana::make_tuple(TIGON_LIST(TIGON_ACCESSOR, Name, __VA_ARGS__)); } \
  };                                                                                                                   \
  struct tigon_fields {                                                                                                \
    template <class TigonStruct, class TigonVisit>                                                                     \
    static void visit(TigonStruct& object, const TigonVisit& visit_field) {                                            \
      TIGON_FOR_EACH(TIGON_VISIT, Name, __VA_ARGS__)                                                                   \
    }                                                                                                                  \
    template <class TigonStruct, class TigonLike, class TigonVisit>                                                    \
    static void visit_pairs(TigonStruct& object, const TigonLike& like, const TigonVisit& visit_pair) {                \
      TIGON_FOR_EACH(TIGON_VISIT_PAIR, Name, __VA_ARGS__)                                                              \
    }                                                                                                                  \
  }
