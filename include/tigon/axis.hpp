// An axis is a type: `struct Tokens : tigon::axis<"tokens"> {};`. Axes are told apart by type and printed by name.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tigon {

// A string literal as a template argument.
template <std::size_t Size>
struct FixedString {
  char text[Size]{};
  consteval FixedString(const char (&literal)[Size]) {
    for (std::size_t i = 0; i < Size; ++i) text[i] = literal[i];
  }
  [[nodiscard]] constexpr std::string_view view() const { return {text, Size - 1}; }
};

// `axis<"pair", 2>` fixes the extent; without it the extent is given to compile or bind.
template <FixedString Name, std::int64_t Extent = -1>
struct axis {
  static_assert(Extent >= -1, "tigon: an axis cannot have a negative extent.");
  static constexpr std::string_view axis_name = Name.view();
  static constexpr std::int64_t fixed_extent = Extent;
};

namespace detail {

// Its address is the identity of an axis type; one for all shared objects of a process.
template <class A>
#if defined(__GNUC__)
[[gnu::visibility("default")]]
#endif
inline char axis_tag{};

template <class A>
inline constexpr bool is_axis = requires {
  { A::axis_name } -> std::same_as<const std::string_view&>;
  A::fixed_extent;
};

// What the untyped half of the library knows of an axis type.
struct AxisRef {
  const void* tag = nullptr;
  std::string_view name;
  std::int64_t fixed = -1;
};

template <class A>
constexpr AxisRef axis_ref() {
  static_assert(is_axis<A>, "tigon: an axis is a type derived from tigon::axis<\"name\">; this is another type.");
  return {&axis_tag<A>, A::axis_name, A::fixed_extent};
}

}  // namespace detail
}  // namespace tigon
