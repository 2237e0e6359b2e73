// Type lists of axes and the signatures D(A...): union, removal, containment, each a small metafunction.
#pragma once
#include <array>
#include <type_traits>

#include "tigon/axis.hpp"
#include "tigon/dtype.hpp"

namespace tigon {

// Slots of an argument or result struct that are not plain tensors.
template <class D>
struct scalar;  // scalar<f32>: a number of the host, changed without a recompile
template <class S>
struct maybe;  // maybe<bf16(Hidden)>: may be absent; presence is seen when tracing
template <class S>
struct accumulate;  // an output that is added to what the caller's buffer holds
template <FixedString Input, class S>
struct inplace;  // an output that shares the buffer of the named input; see InPlace in arguments.hpp for whole structs

namespace detail {

template <class... A>
struct List {
  static constexpr int size = sizeof...(A);
};

template <class A, class L>
inline constexpr bool contains = false;
template <class A, class... B>
inline constexpr bool contains<A, List<B...>> = (std::is_same_v<A, B> || ...);

template <class L>
inline constexpr bool all_different = true;
template <class A, class... B>
inline constexpr bool all_different<List<A, B...>> = !contains<A, List<B...>> && all_different<List<B...>>;

template <class L, class M>
inline constexpr bool is_subset = false;
template <class... A, class M>
inline constexpr bool is_subset<List<A...>, M> = (contains<A, M> && ...);
template <class L, class M>
inline constexpr bool same_set = L::size == M::size && is_subset<L, M>;

template <class Kept, class Drop, class... Rest>
struct RemoveStep {
  using type = Kept;
};
template <class... K, class Drop, class A, class... Rest>
struct RemoveStep<List<K...>, Drop, A, Rest...>
    : RemoveStep<std::conditional_t<contains<A, Drop>, List<K...>, List<K..., A>>, Drop, Rest...> {};
template <class L, class Drop>
struct RemoveOf;
template <class... A, class Drop>
struct RemoveOf<List<A...>, Drop> : RemoveStep<List<>, Drop, A...> {};
// The axes of L that Drop lacks, in L's order.
template <class L, class Drop>
using Remove = typename RemoveOf<L, Drop>::type;

template <class L, class M>
struct ConcatOf;
template <class... A, class... B>
struct ConcatOf<List<A...>, List<B...>> {
  using type = List<A..., B...>;
};
template <class L, class M>
using Concat = typename ConcatOf<L, M>::type;

// The axes of L, then those of M that L lacks.
template <class L, class M>
struct UnionOf {
  using type = Concat<L, Remove<M, L>>;
};
template <class L>
struct UnionOf<L, L> {
  using type = L;
};
template <class L, class M>
using Union = typename UnionOf<L, M>::type;

template <class L, class... More>
struct UnionAll {
  using type = L;
};
template <class L, class M, class... More>
struct UnionAll<L, M, More...> : UnionAll<Union<L, M>, More...> {};

// From replaced by To..., where it stood.
template <class L, class From, class To>
struct ReplaceOf;
template <class... A, class From, class To>
struct ReplaceOf<List<A...>, From, To> {
  template <class Done, class... Rest>
  struct Step {
    using type = Done;
  };
  template <class... Done, class B, class... Rest>
  struct Step<List<Done...>, B, Rest...>
      : Step<std::conditional_t<std::is_same_v<B, From>, Concat<List<Done...>, To>, List<Done..., B>>, Rest...> {};
  using type = typename Step<List<>, A...>::type;
};
template <class L, class From, class To>
using Replace = typename ReplaceOf<L, From, To>::type;

template <class D>
inline constexpr bool is_dtype = requires { dtype_of<D>::value; };

enum class OutputKind : std::uint8_t { write, accumulate, inplace };

// Axes of a tensor that memory holds: an argument, a result, a buffer. A value in between may have more.
inline constexpr int max_rank = 8;
template <class S>
constexpr void check_stored() {
  static_assert(
      S::axes::size <= max_rank,
      "tigon: an argument, a result or a buffer has at most 8 axes; merge<Outer, Inner, Whole> some of them.");
}

// A signature taken apart. The static_asserts come first so that they are the first thing a compiler says.
template <class S>
struct Signature {
  static_assert(!std::is_same_v<S, S>,
                "tigon: a slot is D(Axes...), scalar<D>, maybe<...>, accumulate<...> or inplace<\"input\", ...>.");
  using dtype = f32;
  using axes = List<>;
};
template <class D, class... A>
struct Signature<D(A...)> {
  static_assert(is_dtype<D>,
                "tigon: unknown dtype: use one of bool, i32, i64, f16, bf16, f32, f64 (not double or long: f64, i64).");
  static_assert((is_axis<A> && ...), "tigon: an axis is a type derived from tigon::axis<\"name\">.");
  static_assert(all_different<List<A...>>,
                "tigon: two axes of one tensor must differ; rename one (tigon::rename<From, To>).");
  using dtype = D;
  using axes = List<A...>;
  using plain = D(A...);
  static constexpr bool is_scalar = false;
  static constexpr bool optional = false;
  static constexpr OutputKind output = OutputKind::write;
  static constexpr std::string_view shares = {};
};
template <class D>
struct Signature<scalar<D>> : Signature<D()> {
  static constexpr bool is_scalar = true;
};
template <class S>
struct Signature<maybe<S>> : Signature<S> {
  static constexpr bool optional = true;
};
template <class S>
struct Signature<accumulate<S>> : Signature<S> {
  static constexpr OutputKind output = OutputKind::accumulate;
};
template <FixedString Input, class S>
struct Signature<inplace<Input, S>> : Signature<S> {
  static constexpr OutputKind output = OutputKind::inplace;
  static constexpr std::string_view shares = Input.view();
};

template <class D, class L>
struct MakeSignatureOf;
template <class D, class... A>
struct MakeSignatureOf<D, List<A...>> {
  using type = D(A...);
};
template <class D, class L>
using MakeSignature = typename MakeSignatureOf<D, L>::type;

// The C++ type of a dtype.
template <DType dtype>
struct TypeOf;
template <>
struct TypeOf<DType::boolean> {
  using type = bool;
};
template <>
struct TypeOf<DType::i32> {
  using type = i32;
};
template <>
struct TypeOf<DType::i64> {
  using type = i64;
};
template <>
struct TypeOf<DType::f16> {
  using type = f16;
};
template <>
struct TypeOf<DType::bf16> {
  using type = bf16;
};
template <>
struct TypeOf<DType::f32> {
  using type = f32;
};
template <>
struct TypeOf<DType::f64> {
  using type = f64;
};

// Arithmetic's result on the dtypes: 16-bit floats widen.
template <class D>
using Arithmetic = typename TypeOf<arithmetic(dtype_v<D>)>::type;
template <class D, class E>
using Promote = typename TypeOf<promote(dtype_v<D>, dtype_v<E>)>::type;
template <class D, class... More>
struct PromoteAll {
  using type = D;
};
template <class D, class E, class... More>
struct PromoteAll<D, E, More...> : PromoteAll<Promote<D, E>, More...> {};
// Selection's result (where): as arithmetic, but two booleans stay boolean.
template <class D, class E>
struct SelectOf {
  using type = Promote<D, E>;
};
template <>
struct SelectOf<bool, bool> {
  using type = bool;
};
template <class D, class E>
using Select = typename SelectOf<D, E>::type;

// The axes of a list for the untyped half; a span over a constant.
struct AxisRefs {
  const AxisRef* first = nullptr;
  int count = 0;
  [[nodiscard]] const AxisRef* begin() const { return first; }
  [[nodiscard]] const AxisRef* end() const { return first + count; }
};
template <class L>
struct RefsOf;
template <class... A>
struct RefsOf<List<A...>> {
  static constexpr std::array<AxisRef, sizeof...(A)> array = {axis_ref<A>()...};
};
template <>
struct RefsOf<List<>> {
  static constexpr std::array<AxisRef, 0> array = {};
};
template <class L>
constexpr AxisRefs refs() {
  return {RefsOf<L>::array.data(), L::size};
}

// dtype and axes of a result, for the untyped half.
struct TypeRef {
  DType dtype = DType::f32;
  AxisRefs axes;
};
template <class S>
constexpr TypeRef type_ref() {
  return {dtype_v<typename Signature<S>::dtype>, refs<typename Signature<S>::axes>()};
}

}  // namespace detail
}  // namespace tigon
