// A reduction of the user's own: a monoid written as lambdas over scalars, folded by reduce<A...>(monoid, operands...).
#pragma once
#include <array>
#include <memory>
#include <span>
#include <string>

#include "tigon/reduce.hpp"

namespace tigon {

// A value in a monoid's law while it is being written down. C++ numbers become constants of what they meet.
class Scalar {
 public:
  Scalar(double number) : number_(number) {}
  [[nodiscard]] int id() const { return id_; }
  [[nodiscard]] double number() const { return number_; }  // of a constant, whose id is negative
  static Scalar of(int id) {
    Scalar scalar(0);
    scalar.id_ = id;
    return scalar;
  }

  friend Scalar operator+(Scalar a, Scalar b) { return apply(ScalarOp::add, {a, b}); }
  friend Scalar operator-(Scalar a, Scalar b) { return apply(ScalarOp::sub, {a, b}); }
  friend Scalar operator*(Scalar a, Scalar b) { return apply(ScalarOp::mul, {a, b}); }
  friend Scalar operator/(Scalar a, Scalar b) { return apply(ScalarOp::div, {a, b}); }
  friend Scalar operator-(Scalar a) { return apply(ScalarOp::neg, {a}); }
  friend Scalar operator==(Scalar a, Scalar b) { return apply(ScalarOp::equal, {a, b}); }
  friend Scalar operator!=(Scalar a, Scalar b) { return apply(ScalarOp::not_equal, {a, b}); }
  friend Scalar operator<(Scalar a, Scalar b) { return apply(ScalarOp::less, {a, b}); }
  friend Scalar operator<=(Scalar a, Scalar b) { return apply(ScalarOp::less_equal, {a, b}); }
  friend Scalar operator>(Scalar a, Scalar b) { return apply(ScalarOp::less, {b, a}); }
  friend Scalar operator>=(Scalar a, Scalar b) { return apply(ScalarOp::less_equal, {b, a}); }
  friend Scalar operator&&(Scalar a, Scalar b) { return apply(ScalarOp::logical_and, {a, b}); }
  friend Scalar operator||(Scalar a, Scalar b) { return apply(ScalarOp::logical_or, {a, b}); }
  friend Scalar operator!(Scalar a) { return apply(ScalarOp::logical_not, {a}); }
  friend Scalar where(Scalar condition, Scalar a, Scalar b) { return apply(ScalarOp::where, {condition, a, b}); }
  friend Scalar min(Scalar a, Scalar b) { return apply(ScalarOp::min, {a, b}); }
  friend Scalar max(Scalar a, Scalar b) { return apply(ScalarOp::max, {a, b}); }
  friend Scalar pow(Scalar a, Scalar b) { return apply(ScalarOp::pow, {a, b}); }
  friend Scalar logaddexp(Scalar a, Scalar b) { return apply(ScalarOp::logaddexp, {a, b}); }
  friend Scalar mul0(Scalar a, Scalar b) { return apply(ScalarOp::mul0, {a, b}); }
  friend Scalar abs(Scalar a) { return apply(ScalarOp::abs, {a}); }
  friend Scalar sqrt(Scalar a) { return apply(ScalarOp::sqrt, {a}); }
  friend Scalar rsqrt(Scalar a) { return apply(ScalarOp::rsqrt, {a}); }
  friend Scalar exp(Scalar a) { return apply(ScalarOp::exp, {a}); }
  friend Scalar expm1(Scalar a) { return apply(ScalarOp::expm1, {a}); }
  friend Scalar log(Scalar a) { return apply(ScalarOp::log, {a}); }
  friend Scalar log1p(Scalar a) { return apply(ScalarOp::log1p, {a}); }
  friend Scalar tanh(Scalar a) { return apply(ScalarOp::tanh, {a}); }
  friend Scalar sigmoid(Scalar a) { return apply(ScalarOp::sigmoid, {a}); }
  friend Scalar relu(Scalar a) { return apply(ScalarOp::relu, {a}); }
  friend Scalar square(Scalar a) { return a * a; }

 private:
  static Scalar apply(ScalarOp op, std::initializer_list<Scalar> operands);
  double number_;
  int id_ = -1;
};

// One slot of a monoid's state: its identity, and whether it holds elements, an i64 index or a truth value.
struct StateSlot {
  enum class Kind : std::uint8_t { element, index, truth };
  double identity = 0;
  Kind kind = Kind::element;
  StateSlot(double value = 0, Kind slot_kind = Kind::element) : identity(value), kind(slot_kind) {}
};

namespace detail {

std::shared_ptr<UserMonoid> make_monoid(std::string name, int operands, std::span<const StateSlot> state,
                                        bool commutative);
// Scalars made on this thread while it lives belong to one program of the monoid. Defined in dsl/trace_monoid.cpp.
class Recording {
 public:
  explicit Recording(UserMonoid& monoid);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  Scalar element(int input);
  Scalar index(int input);
  Scalar slot(int input, int slot);
  Scalar finish(int input, int finish);
  void lift(std::span<const Scalar> results);
  void merge(std::span<const Scalar> results);
  void finish(std::string name, Scalar result);
  void adjoint(std::span<const Scalar> results);
  [[nodiscard]] int finish_count() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace detail

// const auto weighted = tigon::monoid<2, 2>("weighted_mean", {0.0, 0.0})
//     .lift([](auto x, Scalar) { return std::array{x[0] * x[1], x[1]}; })
//     .merge([](auto a, auto b) { return std::array{a[0] + b[0], a[1] + b[1]}; })
//     .finish("mean", [](auto s) { return s[0] / s[1]; });
// The laws are tried on samples: merge(identity, s) is s, merge is associative, and commutative unless said otherwise.
template <int Operands, int Slots>
class Monoid {
  static_assert(Operands >= 1 && Slots >= 1 && Slots <= 4, "tigon: a monoid has operands and a state of 1 to 4 slots.");

 public:
  using Elements = std::array<Scalar, Operands>;
  using State = std::array<Scalar, Slots>;

  Monoid(std::string name, const std::array<StateSlot, Slots>& state, bool commutative)
      : monoid_(detail::make_monoid(std::move(name), Operands, state, commutative)) {}

  // (operands, global index along the first folded axis) -> state
  template <class F>
  Monoid& lift(F f) {
    detail::Recording recording(*monoid_);
    const Elements x = elements(recording, std::make_integer_sequence<int, Operands>{});
    const State state = f(x, recording.index(Operands));
    recording.lift(state);
    return *this;
  }
  // (earlier state, later state) -> state
  template <class F>
  Monoid& merge(F f) {
    detail::Recording recording(*monoid_);
    const State a = slots(recording, 0, std::make_integer_sequence<int, Slots>{});
    const State b = slots(recording, Slots, std::make_integer_sequence<int, Slots>{});
    const State state = f(a, b);
    recording.merge(state);
    return *this;
  }
  // state -> value
  template <class F>
  Monoid& finish(std::string name, F f) {
    detail::Recording recording(*monoid_);
    const Scalar result = f(slots(recording, 0, std::make_integer_sequence<int, Slots>{}));
    recording.finish(std::move(name), result);
    return *this;
  }
  // (operands, finishes, cotangents of the finishes) -> cotangent of each operand, after the last finish. Without it a
  // gradient is an error that names the monoid.
  template <class F>
  Monoid& adjoint(F f) {
    detail::Recording recording(*monoid_);
    const Elements x = elements(recording, std::make_integer_sequence<int, Operands>{});
    std::vector<Scalar> finishes, cotangents;
    for (int i = 0; i < recording.finish_count(); ++i) {
      finishes.push_back(recording.finish(Operands + i, i));
      cotangents.push_back(recording.element(Operands + recording.finish_count() + i));
    }
    const Elements result = f(x, std::span<const Scalar>(finishes), std::span<const Scalar>(cotangents));
    recording.adjoint(result);
    return *this;
  }

  [[nodiscard]] const detail::UserMonoid& law() const { return *monoid_; }

 private:
  template <int... I>
  static Elements elements(detail::Recording& recording, std::integer_sequence<int, I...>) {
    return {recording.element(I)...};
  }
  template <int... I>
  static State slots(detail::Recording& recording, int first, std::integer_sequence<int, I...>) {
    return {recording.slot(first + I, I)...};
  }
  std::shared_ptr<detail::UserMonoid> monoid_;
};

template <int Operands, int Slots>
Monoid<Operands, Slots> monoid(std::string name, const std::array<StateSlot, Slots>& state, bool commutative = true) {
  return {std::move(name), state, commutative};
}

// A folded state; `finish` gives its values. Equal folds share one state.
template <class D, class L>
class Folded {
 public:
  explicit Folded(detail::Value state) : state_(state) {}
  // E is i64 for a finish that yields an index, bool for one that yields a truth value.
  template <class E = D>
  [[nodiscard]] Tensor<detail::MakeSignature<E, L>> finish(std::string_view name) const {
    using S = detail::MakeSignature<E, L>;
    return Tensor<S>(detail::finish(state_, name, detail::type_ref<S>()));
  }
  template <class E = D>
  [[nodiscard]] Tensor<detail::MakeSignature<E, L>> finish(int number) const {
    using S = detail::MakeSignature<E, L>;
    return Tensor<S>(detail::finish(state_, number, detail::type_ref<S>()));
  }

 private:
  detail::Value state_;
};

template <class... A, int Operands, int Slots, detail::TensorLike... T>
auto fold(const Monoid<Operands, Slots>& monoid, const T&... operands) {
  static_assert(sizeof...(T) == Operands, "tigon: the monoid takes another number of operands.");
  static_assert(sizeof...(A) > 0, "tigon: name the axes to fold over: fold<Tokens>(monoid, x).");
  using First = detail::List<>;
  using All = typename detail::UnionAll<First, detail::AxesOf<T>...>::type;
  static_assert(detail::is_subset<detail::List<A...>, All>, "tigon: this folds over an axis that no operand has.");
  using D = typename detail::PromoteAll<detail::Arithmetic<detail::DTypeOf<T>>...>::type;
  const detail::Value values[] = {operands.value()...};
  return Folded<D, detail::Remove<All, detail::List<A...>>>(
      detail::fold(monoid.law(), values, detail::refs<detail::List<A...>>()));
}

// The fold's first finish.
template <class... A, int Operands, int Slots, detail::TensorLike... T>
auto reduce(const Monoid<Operands, Slots>& monoid, const T&... operands) {
  return fold<A...>(monoid, operands...).finish(0);
}

}  // namespace tigon
