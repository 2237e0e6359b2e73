// Visits every slot of an argument or result struct with its path: nested structs, arrays and vectors, "layers[3].up".
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tigon/detail/fields.hpp"

namespace tigon::detail {

template <class T>
concept SlotLike = requires { typename std::remove_cvref_t<T>::tigon_slot; };
template <class T>
concept Struct = requires { typename std::remove_cvref_t<T>::tigon_fields; };

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
void visit_slots(T& object, std::string& path, F& f) {
  using Plain = std::remove_const_t<T>;
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
    Plain::tigon_fields::visit(object, [&](const char* name, auto& field) {
      const std::size_t length = path.size();
      if (!is_transparent<Plain, std::remove_cvref_t<decltype(field)>>(name)) {
        if (length != 0) path += '.';
        path += name;
      }
      visit_slots(field, path, f);
      path.resize(length);
    });
  }
}

// f(slot), without paths: nothing is allocated.
template <class T, class F>
void visit_slots(T& object, F& f) {
  using Plain = std::remove_const_t<T>;
  if constexpr (SlotLike<T>) {
    f(object);
  } else if constexpr (is_sequence<Plain>) {
    for (auto& element : object) visit_slots(element, f);
  } else {
    Plain::tigon_fields::visit(object, [&](const char*, auto& field) { visit_slots(field, f); });
  }
}

// f(a, b) for the slots of two structs of one template; the vectors of the first become as long as the second's.
template <class T, class U, class F>
void visit_pairs(T& object, const U& like, F& f) {
  if constexpr (SlotLike<T>) {
    f(object, like);
  } else if constexpr (is_sequence<T>) {
    if constexpr (requires { object.resize(like.size()); }) object.resize(like.size());
    for (std::size_t i = 0; i < like.size(); ++i) visit_pairs(object[i], like[i], f);
  } else {
    T::tigon_fields::visit_pairs(object, like, [&](auto& mine, const auto& theirs) { visit_pairs(mine, theirs, f); });
  }
}

}  // namespace tigon::detail
