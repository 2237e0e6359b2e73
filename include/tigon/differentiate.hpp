// Gradients of functions: value_and_grad, vjp, linearize. Each yields what compile takes.
#pragma once
#include "tigon/buffer.hpp"
#include "tigon/detail/differentiated.hpp"
#include "tigon/function.hpp"

namespace tigon {

// The arguments to differentiate with respect to, by path; a path takes the subtree below it: wrt<"layers">.
template <FixedString... Path>
struct Wrt {};
template <FixedString... Path>
inline constexpr Wrt<Path...> wrt{};

// grad_dtype<"weight", f32>: the gradient is rounded to this dtype instead of the argument's.
template <FixedString Path, class D>
struct GradDType {};
template <FixedString Path, class D>
inline constexpr GradDType<Path, D> grad_dtype{};

// grad_accumulate<"weight">: the gradient is added to what the caller's buffer holds.
template <FixedString... Path>
struct GradAccumulate {};
template <FixedString... Path>
inline constexpr GradAccumulate<Path...> grad_accumulate{};

namespace detail {

template <FixedString Path, class D>
void add_option(GradientRequest& request, GradDType<Path, D>) {
  static_assert(is_dtype<D>, "tigon: unknown dtype: use one of bool, i32, i64, f16, bf16, f32, f64.");
  static_assert(is_floating(dtype_v<D>), "tigon: a gradient is a float: grad_dtype takes f16, bf16, f32 or f64.");
  request.dtypes.push_back({std::string(Path.view()), dtype_v<D>});
}
template <FixedString... Path>
void add_option(GradientRequest& request, GradAccumulate<Path...>) {
  (request.accumulated.emplace_back(Path.view()), ...);
}
template <FixedString... Path, class... Options>
GradientRequest gradient_request(Wrt<Path...>, Options... options) {
  static_assert(sizeof...(Path) > 0, "tigon: name the arguments to differentiate with respect to: wrt<\"x\">.");
  GradientRequest request;
  (request.wrt.emplace_back(Path.view()), ...);
  (add_option(request, options), ...);
  return request;
}

// The result field of a value: a single result stands for itself.
template <class R, template <class> class Slot>
struct ValueFieldOf {
  using type = ResultSlots<R, Slot>;
};
template <class S, template <class> class Slot>
struct ValueFieldOf<Tensor<S>, Slot> {
  using type = Slot<S>;
};
template <class R, template <class> class Slot>
using ValueField = typename ValueFieldOf<R, Slot>::type;

template <class R>
auto value_shape(const ResultSlots<R, Shape>& shape) {
  if constexpr (std::is_same_v<ValueField<R, Shape>, ResultSlots<R, Shape>>) {
    return shape;
  } else {
    return shape.value;
  }
}

template <template <template <class> class> class Args, class R>
struct ValueAndGrad {
  template <template <class> class Slot>
  struct Slots {
    static constexpr std::string_view tigon_transparent = "value";
    TIGON_ARGS(Slots, (ValueField<R, Slot>, value), (Args<Gradient>, grad));
  };
};
template <template <template <class> class> class Args>
struct GradOnly {
  template <template <class> class Slot>
  struct Slots {
    TIGON_ARGS(Slots, (Args<Gradient>, grad));
  };
};
// Marks what a Function of gradients returns, which is no tensor.
template <template <template <class> class> class Args, class R>
struct ValueAndGradResult {};
template <template <template <class> class> class Args>
struct GradResult {};
template <template <template <class> class> class Args, class R>
struct ResultOf<ValueAndGradResult<Args, R>> {
  template <template <class> class Slot>
  using Slots = typename ValueAndGrad<Args, R>::template Slots<Slot>;
};
template <template <template <class> class> class Args>
struct ResultOf<GradResult<Args>> {
  template <template <class> class Slot>
  using Slots = typename GradOnly<Args>::template Slots<Slot>;
};

template <template <class> class Slot>
struct Upstream {
  template <class S>
  using type = Slot<maybe<typename Signature<S>::plain>>;
};
// The arguments of a vjp: the function's own, and an optional upstream for each result.
template <template <template <class> class> class Args, class R>
struct VjpArguments {
  template <template <class> class Slot>
  struct Slots {
    static constexpr std::string_view tigon_transparent = "arguments";
    using Upstreams = ResultSlots<R, Upstream<Slot>::template type>;
    TIGON_ARGS(Slots, (Args<Slot>, arguments), (Upstreams, upstream));
  };
};

template <class Slots>
std::vector<std::string> present_paths(const Slots& shape) {
  std::vector<std::string> paths;
  auto add = [&](const std::string& path, const auto& slot) {
    if (slot.given) paths.push_back(path);
  };
  std::string path;
  visit_slots(shape, path, add);
  return paths;
}

// Empty gradients with the vectors of the arguments.
template <template <template <class> class> class Args>
Args<Gradient> no_gradients(const Args<Shape>& shape) {
  Args<Gradient> gradients;
  auto nothing = [](auto&, const auto&) {};
  visit_pairs(gradients, shape, nothing);
  return gradients;
}

template <template <template <class> class> class Args, class R>
class ValueAndGradBody final : public FunctionBody<Args, ValueAndGradResult<Args, R>> {
 public:
  ValueAndGradBody(Function<Args, R> inner, GradientRequest request, std::string output)
      : inner_(std::move(inner)), request_(std::move(request)), output_(std::move(output)) {}
  [[nodiscard]] Traced<ValueAndGradResult<Args, R>> trace(const std::string& name,
                                                          const Args<Shape>& shape) const override {
    const Traced<R> traced = inner_.trace_with_results(shape);
    return {value_and_grad(traced.graph, name, request_, output_),
            {value_shape<R>(traced.result), no_gradients<Args>(shape)}};
  }

 private:
  Function<Args, R> inner_;
  GradientRequest request_;
  std::string output_;
};

template <template <template <class> class> class Args, class R>
class VjpBody final : public FunctionBody<VjpArguments<Args, R>::template Slots, GradResult<Args>> {
 public:
  VjpBody(Function<Args, R> inner, GradientRequest request) : inner_(std::move(inner)), request_(std::move(request)) {}
  [[nodiscard]] Traced<GradResult<Args>> trace(
      const std::string& name, const typename VjpArguments<Args, R>::template Slots<Shape>& shape) const override {
    const Traced<R> traced = inner_.trace_with_results(shape.arguments);
    return {vjp(traced.graph, name, request_, present_paths(shape.upstream)), {no_gradients<Args>(shape.arguments)}};
  }

 private:
  Function<Args, R> inner_;
  GradientRequest request_;
};

template <class R>
inline constexpr bool is_single = false;
template <class S>
inline constexpr bool is_single<Tensor<S>> = true;

}  // namespace detail

// The function's results and the gradients of its one number: of the result `loss` if it has several. The others are
// values only.
template <template <template <class> class> class Args, class R, FixedString... Path, class... Options>
auto value_and_grad(const Function<Args, R>& function, Wrt<Path...> paths, Options... options) {
  if constexpr (detail::is_single<R>) {
    static_assert(detail::AxesOf<R>::size == 0,
                  "tigon: value_and_grad needs a function that returns one number; reduce it, or use vjp.");
  }
  using Body = detail::ValueAndGradBody<Args, R>;
  return Function<Args, detail::ValueAndGradResult<Args, R>>(
      function.name() + "/value_and_grad", std::make_shared<Body>(function, detail::gradient_request(paths, options...),
                                                                  detail::is_single<R> ? "value" : "loss"));
}

// Gradients for given upstreams, one per result, each optional: {.arguments = {...}, .upstream = {.y = dy}}. The shape
// given to compile says which are present; none marked means all of them.
template <template <template <class> class> class Args, class R, FixedString... Path, class... Options>
auto vjp(const Function<Args, R>& function, Wrt<Path...> paths, Options... options) {
  using Body = detail::VjpBody<Args, R>;
  return Function<detail::VjpArguments<Args, R>::template Slots, detail::GradResult<Args>>(
      function.name() + "/vjp", std::make_shared<Body>(function, detail::gradient_request(paths, options...)));
}

// Forward now, backward later: compile gives the two halves.
template <template <template <class> class> class Args, class R>
class Linearized {
 public:
  Linearized(Function<Args, R> inner, detail::GradientRequest request)
      : inner_(std::move(inner)), request_(std::move(request)) {}
  [[nodiscard]] const Function<Args, R>& function() const { return inner_; }
  [[nodiscard]] const detail::GradientRequest& request() const { return request_; }

 private:
  Function<Args, R> inner_;
  detail::GradientRequest request_;
};
template <template <template <class> class> class Args, class R, FixedString... Path, class... Options>
auto linearize(const Function<Args, R>& function, Wrt<Path...> paths, Options... options) {
  return Linearized<Args, R>(function, detail::gradient_request(paths, options...));
}

}  // namespace tigon
