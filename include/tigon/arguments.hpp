// Argument and result structs: one template over Slot is symbols when tracing, buffers when launching, gradients after.
#pragma once
#include "tigon/detail/visit.hpp"
#include "tigon/tensor.hpp"

// template <template <class> class Slot>
// struct NormArgs {
//   TIGON_ARGS(NormArgs, (Slot<bf16(Tokens, Hidden)>, x), (Slot<maybe<bf16(Hidden)>>, weight), (Slot<scalar<f32>>,
//   eps));
// };
// Fields may also be such structs, std::array or std::vector of slots or structs. Inherited fields are not seen.
// Give each a name of its own in the program: g++ 12 merges what is made for equally named templates of the unnamed
// namespaces of two files.
#define TIGON_ARGS(Name, ...)                      \
  TIGON_FOR_EACH(TIGON_DECLARE, Name, __VA_ARGS__) \
  TIGON_ACCESSORS(Name, __VA_ARGS__)

// The same for results. What a field is given is rounded to the field's dtype, which makes it a rounding point.
#define TIGON_OUT(Name, ...)                              \
  TIGON_FOR_EACH(TIGON_DECLARE_OUTPUT, Name, __VA_ARGS__) \
  TIGON_ACCESSORS(Name, __VA_ARGS__)

namespace tigon {

// An output slot inplace<"weight", S> shares the buffer of input `weight`. Where "weight" names a struct, an array or
// a vector of inputs, it shares the one whose place there is the output's own: at `next[3].up`, inplace<"layers", S>
// shares `layers[3].up`. All slots of a struct at once:
//   (Weights<InPlace<"weights", Slot>::template slot>, weights)
namespace detail {
template <FixedString Input, class S>
struct InPlaceSlot {
  using type = inplace<Input, S>;
};
template <FixedString Input, class S>
struct InPlaceSlot<Input, maybe<S>> {
  using type = maybe<inplace<Input, S>>;
};
}  // namespace detail
template <FixedString Input, template <class> class Slot>
struct InPlace {
  template <class S>
  using slot = Slot<typename detail::InPlaceSlot<Input, S>::type>;
};

// In Args<Shape>, the prototype that tracing needs: which optional slots are present, how long the vectors are.
struct Present {};
inline constexpr Present present{};
template <class S>
class Shape {
 public:
  using tigon_slot = S;
  static constexpr bool given = true;
};
template <class S>
class Shape<maybe<S>> {
 public:
  using tigon_slot = maybe<S>;
  bool given = false;
  Shape() = default;
  Shape(Present) : given(true) {}
};

namespace detail {

// A tensor field of a result struct: takes a tensor of other dtype, which it rounds.
template <class S>
class Output : public Tensor<S> {
 public:
  Output() = default;
  template <class Other>
  Output(const Tensor<Other>& other) : Tensor<S>(rounded(other)) {}
  Output(const Tensor<S>& other) : Tensor<S>(other) {}

 private:
  template <class Other>
  static auto rounded(const Tensor<Other>& other) {
    using D = typename Signature<S>::dtype;
    static_assert(same_set<typename Signature<Other>::axes, typename Signature<S>::axes>,
                  "tigon: a result is given a tensor of other axes than it declares; reduce, broadcast or rename.");
    return TensorOf<D, typename Signature<S>::axes>(other.value().trace == 0 ? other.value()
                                                                             : cast(dtype_v<D>, other.value()));
  }
  template <class D, class L>
  using TensorOf = Tensor<MakeSignature<D, L>>;
};

template <class T>
struct OutputFieldOf {
  using type = T;
};
template <class S>
struct OutputFieldOf<Tensor<S>> {
  using type = Output<S>;
};
template <class S>
struct OutputFieldOf<Tensor<maybe<S>>> {
  using type = Tensor<maybe<S>>;
};
template <class T, std::size_t Size>
struct OutputFieldOf<std::array<T, Size>> {
  using type = std::array<typename OutputFieldOf<T>::type, Size>;
};
template <class T>
struct OutputFieldOf<std::vector<T>> {
  using type = std::vector<typename OutputFieldOf<T>::type>;
};
template <class T>
using OutputField = typename OutputFieldOf<T>::type;

// A slot with the present flag of another of any kind, for shape_of.
template <class T>
bool is_given(const T& slot) {
  if constexpr (requires { slot.given; }) {
    return slot.given;
  } else {
    return static_cast<bool>(slot);
  }
}

}  // namespace detail

// The prototype of an argument struct at hand: its optional slots' presence and its vectors' sizes.
template <template <template <class> class> class Args, template <class> class Slot>
Args<Shape> shape_of(const Args<Slot>& args) {
  Args<Shape> shape;
  auto copy = [](auto& mine, const auto& theirs) {
    if constexpr (requires { mine.given = true; }) mine.given = static_cast<bool>(theirs);
  };
  detail::visit_pairs(shape, args, copy);
  return shape;
}

}  // namespace tigon
