// auto [forward, backward] = compile(linearize(f, wrt<"x">), extents): forward now, backward later and as often as
// wanted.
#pragma once
#include "tigon/compile.hpp"
#include "tigon/differentiate.hpp"

namespace tigon {

// What crosses from forward to backward: the saved values, and views of the arguments, which must outlive it.
class Saved {
 public:
  std::vector<detail::RawBuffer> arguments;
  std::vector<detail::RawScalar> scalars;
  std::vector<detail::RawBuffer> values;
  std::shared_ptr<void> owner;
};

// auto [out, saved] = forward(stream, args);
template <template <template <class> class> class Args, class R>
class CompiledForward {
 public:
  using Results = detail::ResultSlots<R, Owned>;
  struct Output {
    Results out;
    Saved saved;
  };

  CompiledForward(std::shared_ptr<detail::CompiledCore> core, detail::ResultSlots<R, Shape> shape, std::size_t results)
      : core_(std::move(core)), shape_(std::move(shape)), results_(results) {}

  Output operator()(const Stream& stream, const Args<Buffer>& args) const {
    const detail::CompileRequest& request = core_->request();
    const detail::Packed in(*core_, 0, request.inputs.size(), request.scalars.size(), args);
    const detail::Packed out(*core_, 1, request.outputs.size(), 0);
    Output output;
    output.saved.owner = core_->launch_pooled(stream, in.buffers(), in.scalars(), out.room());
    auto nothing = [](auto&, const auto&) {};
    detail::visit_pairs(output.out, shape_, nothing);
    detail::take_results(output.out, out.room().first(results_), output.saved.owner);
    const auto values = out.room().subspan(results_);
    output.saved.arguments.assign(in.buffers().begin(), in.buffers().end());
    output.saved.scalars.assign(in.scalars().begin(), in.scalars().end());
    output.saved.values.assign(values.begin(), values.end());
    return output;
  }
  [[nodiscard]] const detail::CompiledCore& core() const { return *core_; }

 private:
  std::shared_ptr<detail::CompiledCore> core_;
  detail::ResultSlots<R, Shape> shape_;
  std::size_t results_;
};

// Args<Gradient> gradients = backward(stream, saved, {.y = dy});
template <template <template <class> class> class Args, class R>
class CompiledBackward {
 public:
  using Upstreams = detail::ResultSlots<R, detail::Upstream<Buffer>::template type>;

  CompiledBackward(std::shared_ptr<detail::CompiledCore> core, Args<Shape> shape)
      : core_(std::move(core)), shape_(std::move(shape)) {}

  Args<Gradient> operator()(const Stream& stream, const Saved& saved, const Upstreams& upstream) const {
    detail::Packed in(*core_, 0, core_->request().inputs.size(), 0);
    in.add(std::span<const detail::RawBuffer>(saved.arguments));
    in.add(std::span<const detail::RawBuffer>(saved.values));
    in.add(upstream);
    const std::size_t scalars = core_->request().scalars.size();
    if (saved.scalars.size() != scalars) detail::refuse_count(*core_, "scalars", saved.scalars.size(), scalars);
    const detail::Packed out(*core_, 1, core_->request().outputs.size(), 0);
    const std::shared_ptr<void> owner = core_->launch_pooled(stream, in.buffers(), saved.scalars, out.room());
    Args<Gradient> gradients = detail::no_gradients<Args>(shape_);
    detail::take_results(gradients, out.room(), owner);
    return gradients;
  }
  [[nodiscard]] const detail::CompiledCore& core() const { return *core_; }

 private:
  std::shared_ptr<detail::CompiledCore> core_;
  Args<Shape> shape_;
};

template <template <template <class> class> class Args, class R>
struct CompiledPair {
  CompiledForward<Args, R> forward;
  CompiledBackward<Args, R> backward;
};

// `upstream` marks the results that backward is given an upstream for; none marked means all of them.
template <template <template <class> class> class Args, class R>
CompiledPair<Args, R> compile(const Linearized<Args, R>& linearized, const Args<Shape>& shape, const Extents& extents,
                              const CompileOptions& options = {},
                              const detail::ResultSlots<R, detail::Upstream<Shape>::template type>& upstream = {}) {
  using namespace detail;
  const Traced<R> traced = linearized.function().trace_with_results(shape);
  check_extents(*traced.graph, extents);
  LinearizedGraphs graphs =
      detail::linearize(traced.graph, linearized.function().name(), linearized.request(), present_paths(upstream));
  CompileRequest forward = compile_request<Args>(graphs.forward, shape, extents, options);
  add_paths(traced.result, forward.outputs, nullptr);
  const std::size_t results = forward.outputs.size();
  forward.outputs.insert(forward.outputs.end(), graphs.saved.begin(), graphs.saved.end());

  CompileRequest backward = compile_request<Args>(graphs.backward, shape, extents, options);
  backward.inputs.insert(backward.inputs.end(), graphs.saved.begin(), graphs.saved.end());
  add_paths(upstream, backward.inputs, nullptr, "upstream");
  add_paths(shape, backward.outputs, nullptr, "grad");
  return {{compile_core(std::move(forward)), traced.result, results}, {compile_core(std::move(backward)), shape}};
}
template <template <template <class> class> class Args, class R>
CompiledPair<Args, R> compile(const Linearized<Args, R>& linearized, const Extents& extents,
                              const CompileOptions& options = {}) {
  return compile(linearized, Args<Shape>{}, extents, options);
}

}  // namespace tigon
