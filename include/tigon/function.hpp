// tigon::function("name", [](Args<Tensor> in) { ... }): a function that can be traced, differentiated and compiled.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include "tigon/arguments.hpp"
#include "tigon/detail/function.hpp"

namespace tigon {
namespace detail {

// A single unnamed result is called `value`.
template <class S>
struct Single {
  template <template <class> class Slot>
  struct Of {
    TIGON_ARGS(Of, (Slot<S>, value));
  };
};

// The struct of a result under another slot: R is what the user's function returns, Tensor<S> or Out<Tensor>.
template <class R>
struct ResultOf {
  static_assert(!std::is_same_v<R, R>, "tigon: a function returns a tensor or a struct made by TIGON_OUT.");
};
template <class S>
struct ResultOf<Tensor<S>> {
  template <template <class> class Slot>
  using Slots = typename Single<S>::template Of<Slot>;
  static Slots<Tensor> named(const Tensor<S>& value) { return {.value = value}; }
};
template <template <template <class> class> class Out>
struct ResultOf<Out<Tensor>> {
  template <template <class> class Slot>
  using Slots = Out<Slot>;
  static Out<Tensor> named(Out<Tensor> result) { return result; }
};
template <class R, template <class> class Slot>
using ResultSlots = typename ResultOf<R>::template Slots<Slot>;

// A traced function: its graph, and which optional results it has and how long its vectors of results are.
template <class R>
struct Traced {
  GraphPointer graph;
  ResultSlots<R, Shape> result;
};

template <template <template <class> class> class Args, class R>
class FunctionBody {
 public:
  virtual ~FunctionBody() = default;
  [[nodiscard]] virtual Traced<R> trace(const std::string& name, const Args<Shape>& shape) const = 0;
};

// Registers every present slot of an argument struct as an input.
template <class A, class Prototype>
A trace_arguments(FunctionTrace& trace, const Prototype& shape) {
  A args;
  auto copy = [](auto& mine, const auto& theirs) {
    if constexpr (requires { static_cast<bool>(mine); }) {
      using S = typename Signature<typename std::remove_cvref_t<decltype(mine)>::tigon_slot>::plain;
      if (theirs.given) mine = Tensor<S>();
    }
  };
  visit_pairs(args, shape, copy);
  auto declare = [&trace](const std::string& path, auto& slot) {
    using S = Signature<typename std::remove_cvref_t<decltype(slot)>::tigon_slot>;
    check_stored<S>();
    const auto make = [&] { return trace.input(path, type_ref<typename S::plain>(), S::is_scalar); };
    if constexpr (S::optional) {
      if (slot) slot = Tensor<typename S::plain>(make());
    } else {
      slot = std::remove_cvref_t<decltype(slot)>(make());
    }
  };
  std::string path;
  visit_slots(args, path, declare);
  return args;
}

template <class Results>
void trace_results(FunctionTrace& trace, const Results& results) {
  auto declare = [&trace](const std::string& path, const auto& slot) {
    using S = Signature<typename std::remove_cvref_t<decltype(slot)>::tigon_slot>;
    check_stored<S>();
    const auto give = [&](Value value) {
      trace.output(path, value, type_ref<typename S::plain>(), S::output, S::shares);
    };
    if constexpr (S::optional) {
      if (slot) give((*slot).value());
    } else {
      give(slot.value());
    }
  };
  std::string path;
  visit_slots(results, path, declare);
}

template <class F, template <template <class> class> class Args, class R>
class TracedBody final : public FunctionBody<Args, R> {
 public:
  TracedBody(F body, const Location& location) : body_(std::move(body)), location_(location) {}
  [[nodiscard]] Traced<R> trace(const std::string& name, const Args<Shape>& shape) const override {
    FunctionTrace trace(name, location_);
    const auto results = ResultOf<R>::named(body_(trace_arguments<Args<Tensor>>(trace, shape)));
    trace_results(trace, results);
    return {trace.finish(), shape_of(results)};
  }

 private:
  F body_;
  Location location_;
};

}  // namespace detail

// A value: copying it shares the body. Tracing happens per compile, with the presence and sizes that `shape` gives.
template <template <template <class> class> class Args, class R>
class Function {
 public:
  template <template <class> class Slot>
  using Arguments = Args<Slot>;
  template <template <class> class Slot>
  using Results = detail::ResultSlots<R, Slot>;

  Function(std::string name, std::shared_ptr<const detail::FunctionBody<Args, R>> body)
      : name_(std::move(name)), body_(std::move(body)) {}

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] detail::Traced<R> trace_with_results(const Args<Shape>& shape) const {
    return body_->trace(name_, shape);
  }
  [[nodiscard]] detail::GraphPointer trace(const Args<Shape>& shape = {}) const {
    return trace_with_results(shape).graph;
  }

 private:
  std::string name_;
  std::shared_ptr<const detail::FunctionBody<Args, R>> body_;
};

namespace detail {
template <class F, template <template <class> class> class Args, class R>
Function<Args, R> make_function(std::string name, F body, R (F::*)(Args<Tensor>) const, const Location& location) {
  return {std::move(name), std::make_shared<TracedBody<F, Args, R>>(std::move(body), location)};
}
template <class F, template <template <class> class> class Args, class R>
Function<Args, R> make_function(std::string name, F body, R (F::*)(const Args<Tensor>&) const,
                                const Location& location) {
  return {std::move(name), std::make_shared<TracedBody<F, Args, R>>(std::move(body), location)};
}
}  // namespace detail

namespace detail {
// The call operator of a body, R(Args<Tensor>) const.
template <class Call>
inline constexpr bool is_body_call = false;
template <class F, template <template <class> class> class Args, class R>
inline constexpr bool is_body_call<R (F::*)(Args<Tensor>) const> = true;
template <class F, template <template <class> class> class Args, class R>
inline constexpr bool is_body_call<R (F::*)(const Args<Tensor>&) const> = true;
template <class F, template <template <class> class> class Args, class R>
inline constexpr bool is_body_call<R (F::*)(Args<Tensor>) const noexcept> = true;
template <class F, template <template <class> class> class Args, class R>
inline constexpr bool is_body_call<R (F::*)(const Args<Tensor>&) const noexcept> = true;
}  // namespace detail

// `body` takes one argument struct over Tensor, by value or const reference; its type is written out, not auto.
template <class F>
auto function(std::string name, F body, const detail::Location& location = detail::Location::current()) {
  static_assert(
      requires { &F::operator(); },
      "tigon: function takes a lambda whose argument type is written out: [](Args<Tensor> in) { ... }.");
  static_assert(
      detail::is_body_call<decltype(&F::operator())>,
      "tigon: function takes a lambda, not a mutable one, over one struct made by TIGON_ARGS, by value or const "
      "reference: [](const Args<Tensor>& in) { ... }.");
  if constexpr (detail::is_body_call<decltype(&F::operator())>)
    return detail::make_function(std::move(name), std::move(body), &F::operator(), location);
}

}  // namespace tigon
