// Visits every slot of an argument or result struct with its path: nested structs, arrays and vectors, "layers[3].up".
#pragma once
#include <array>
#include <boost/hana/at.hpp>
#include <boost/hana/first.hpp>
#include <boost/hana/for_each.hpp>
#include <boost/hana/length.hpp>
#include <boost/hana/second.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "tigon/detail/fields.hpp"

namespace tigon::detail {

template <class T>
concept SlotLike = requires { typename std::remove_cvref_t<T>::tigon_slot; };
template <class T>
concept Struct = requires { typename std::remove_cvref_t<T>::hana_accessors_impl; };

// A struct may name one field whose own fields' paths do not mention it.
template <class T, class Field>
constexpr bool is_transparent(std::string_view field) {
  if constexpr (Struct<Field> && requires { T::tigon_transparent; }) {
    return field == T::tigon_transparent;
  } else {
    return false;
  }
}

template <class T>
inline constexpr bool is_sequence = false;
template <class T, std::size_t Size>
inline constexpr bool is_sequence<std::array<T, Size>> = true;
template <class T, class Allocator>
inline constexpr bool is_sequence<std::vector<T, Allocator>> = true;

// f(path, slot). The path grows and shrinks in place; a caller that keeps it copies it.
template <class T, class F>
void visit_slots(T&& object, std::string& path, F& f) {
  using Plain = std::remove_cvref_t<T>;
  if constexpr (SlotLike<T>) {
    f(path, object);
  } else if constexpr (is_sequence<Plain>) {
    for (std::size_t i = 0; i < object.size(); ++i) {
      const std::size_t length = path.size();
      path += '[' + std::to_string(i) + ']';
      visit_slots(object[i], path, f);
      path.resize(length);
    }
  } else {
    static_assert(
        Struct<T>,
        "tigon: a field is a slot, a struct made by TIGON_ARGS or TIGON_OUT, or an array or vector of those.");
    boost::hana::for_each(boost::hana::accessors<Plain>(), [&](const auto& accessor) {
      const std::size_t length = path.size();
      using Field = std::remove_cvref_t<decltype(boost::hana::second(accessor)(object))>;
      if (!is_transparent<Plain, Field>(boost::hana::first(accessor).c_str())) {
        if (length != 0) path += '.';
        path += boost::hana::first(accessor).c_str();
      }
      visit_slots(boost::hana::second(accessor)(object), path, f);
      path.resize(length);
    });
  }
}

// f(slot), without paths: nothing is allocated.
template <class T, class F>
void visit_slots(T&& object, F& f) {
  using Plain = std::remove_cvref_t<T>;
  if constexpr (SlotLike<T>) {
    f(object);
  } else if constexpr (is_sequence<Plain>) {
    for (auto& element : object) visit_slots(element, f);
  } else {
    boost::hana::for_each(boost::hana::accessors<Plain>(),
                          [&](const auto& accessor) { visit_slots(boost::hana::second(accessor)(object), f); });
  }
}

template <std::size_t I = 0, class T, class U, class F>
void visit_fields(T& object, const U& like, F& f);

// f(a, b) for the slots of two structs of one template; the vectors of the first become as long as the second's.
template <class T, class U, class F>
void visit_pairs(T& object, const U& like, F& f) {
  if constexpr (SlotLike<T>) {
    f(object, like);
  } else if constexpr (is_sequence<T>) {
    if constexpr (requires { object.resize(like.size()); }) object.resize(like.size());
    for (std::size_t i = 0; i < like.size(); ++i) visit_pairs(object[i], like[i], f);
  } else {
    visit_fields(object, like, f);
  }
}
template <std::size_t I, class T, class U, class F>
void visit_fields(T& object, const U& like, F& f) {
  constexpr auto mine = boost::hana::accessors<T>();
  constexpr auto theirs = boost::hana::accessors<U>();
  if constexpr (I < decltype(boost::hana::length(mine))::value) {
    visit_pairs(boost::hana::second(boost::hana::at_c<I>(mine))(object),
                boost::hana::second(boost::hana::at_c<I>(theirs))(like), f);
    visit_fields<I + 1>(object, like, f);
  }
}

}  // namespace tigon::detail
