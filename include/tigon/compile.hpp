// compile(function, extents, options): kernels for a function at given extents, launched on buffers.
#pragma once
#include "tigon/buffer.hpp"
#include "tigon/extents.hpp"
#include "tigon/function.hpp"

namespace tigon {
namespace detail {

// Raw buffers and scalars of one launch: few on the stack, many in memory that the thread keeps.
class Packed {
 public:
  Packed(const CompiledCore& core, int which, std::size_t buffers, std::size_t scalars)
      : core_(core),
        buffers_(buffers <= on_stack ? std::span<RawBuffer>(few_).first(buffers) : spare_buffers(which, buffers)),
        scalars_(scalars <= on_stack ? std::span<RawScalar>(few_scalars_).first(scalars) : spare_scalars(scalars)) {}
  template <class Slots>
  Packed(const CompiledCore& core, int which, std::size_t buffers, std::size_t scalars, const Slots& slots)
      : Packed(core, which, buffers, scalars) {
    add(slots);
  }
  Packed(const Packed&) = delete;
  Packed& operator=(const Packed&) = delete;

  template <class Slots>
  Packed& add(const Slots& slots) {
    auto put = [this](const auto& slot) {
      if constexpr (requires { slot.raw(); }) {
        // The gradient of a host number has a place in the struct and none in a launch.
        if constexpr (!Signature<typename std::remove_cvref_t<decltype(slot)>::tigon_slot>::is_scalar) {
          put_buffer(slot.raw());
        }
      } else {
        if (scalar_count_ < scalars_.size()) {
          if (!slot.given) refuse_scalar(core_, scalar_count_);
          scalars_[scalar_count_] = raw_scalar(slot.value);
        }
        ++scalar_count_;
      }
    };
    visit_slots(slots, put);
    return *this;
  }
  Packed& add(std::span<const RawBuffer> more) {
    for (const RawBuffer& buffer : more) put_buffer(buffer);
    return *this;
  }
  [[nodiscard]] std::span<RawBuffer> buffers() const {
    if (buffer_count_ != buffers_.size()) refuse_count(core_, "buffers", buffer_count_, buffers_.size());
    return buffers_;
  }
  [[nodiscard]] std::span<RawBuffer> room() const { return buffers_; }
  [[nodiscard]] std::span<RawScalar> scalars() const {
    if (scalar_count_ != scalars_.size()) refuse_count(core_, "scalars", scalar_count_, scalars_.size());
    return scalars_;
  }

 private:
  // What is too much is counted, and refused when the spans are asked for.
  void put_buffer(const RawBuffer& buffer) {
    if (buffer_count_ < buffers_.size()) buffers_[buffer_count_] = buffer;
    ++buffer_count_;
  }

  static constexpr std::size_t on_stack = 32;
  const CompiledCore& core_;
  std::array<RawBuffer, on_stack> few_;
  std::array<RawScalar, on_stack> few_scalars_;
  std::span<RawBuffer> buffers_;
  std::span<RawScalar> scalars_;
  std::size_t buffer_count_ = 0;
  std::size_t scalar_count_ = 0;
};

template <class Slots>
void add_paths(const Slots& slots, std::vector<std::string>& buffers, std::vector<std::string>* scalars,
               std::string root = {}) {
  auto add = [&](const std::string& path, const auto& slot) {
    if constexpr (Signature<typename std::remove_cvref_t<decltype(slot)>::tigon_slot>::is_scalar) {
      if (scalars != nullptr) scalars->push_back(path);
    } else {
      buffers.push_back(path);
    }
  };
  visit_slots(slots, root, add);
}

// Results of a pooled launch into the typed struct.
template <class Slots>
void take_results(Slots& results, std::span<const RawBuffer> buffers, const std::shared_ptr<void>& owner) {
  std::size_t next = 0;
  auto take = [&](auto& slot) {
    if constexpr (!Signature<typename std::remove_cvref_t<decltype(slot)>::tigon_slot>::is_scalar) {
      slot.set(buffers[next++], owner);
    }
  };
  visit_slots(results, take);
}

}  // namespace detail

template <template <template <class> class> class Args, class R>
class Compiled {
 public:
  template <template <class> class Slot>
  using Results = detail::ResultSlots<R, Slot>;

  Compiled(std::shared_ptr<detail::CompiledCore> core, Results<Shape> shape)
      : core_(std::move(core)), shape_(std::move(shape)) {}

  // Results by name, in memory of their own.
  Results<Owned> operator()(const Stream& stream, const Args<Buffer>& args) const {
    const detail::Packed in = inputs(args);
    const detail::Packed out(*core_, 1, core_->request().outputs.size(), 0);
    const std::shared_ptr<void> owner = core_->launch_pooled(stream, in.buffers(), in.scalars(), out.room());
    Results<Owned> results;
    auto nothing = [](auto&, const auto&) {};
    detail::visit_pairs(results, shape_, nothing);
    detail::take_results(results, out.room(), owner);
    return results;
  }

  // The hot path: writes into the caller's buffers, works in the caller's workspace, allocates nothing.
  void into(const Stream& stream, const Args<Buffer>& args, const Results<Buffer>& outputs, void* workspace,
            std::size_t workspace_size) const {
    const detail::Packed in = inputs(args);
    detail::Packed out(*core_, 1, core_->request().outputs.size(), 0);
    out.add(outputs);
    core_->launch(stream, in.buffers(), in.scalars(), out.buffers(), workspace, workspace_size);
  }

  [[nodiscard]] std::size_t workspace_bytes() const { return core_->workspace_bytes(); }
  [[nodiscard]] std::size_t workspace_bytes(const Args<Buffer>& args) const {
    return core_->workspace_bytes(inputs(args).buffers());
  }
  [[nodiscard]] Counters counters() const { return core_->counters(); }
  [[nodiscard]] const detail::CompiledCore& core() const { return *core_; }

 private:
  detail::Packed inputs(const Args<Buffer>& args) const {
    return detail::Packed(*core_, 0, core_->request().inputs.size(), core_->request().scalars.size(), args);
  }
  std::shared_ptr<detail::CompiledCore> core_;
  Results<Shape> shape_;
};

namespace detail {
template <template <template <class> class> class Args>
CompileRequest compile_request(GraphPointer graph, const Args<Shape>& shape, Extents extents,
                               const CompileOptions& options) {
  CompileRequest request{std::move(graph), {}, {}, {}, std::move(extents), options};
  add_paths(shape, request.inputs, &request.scalars);
  std::size_t number = 0;
  auto find_absent = [&](const auto& slot) {
    if constexpr (!Signature<typename std::remove_cvref_t<decltype(slot)>::tigon_slot>::is_scalar) {
      if (!slot.given) request.absent.push_back(number);
      ++number;
    }
  };
  visit_slots(shape, find_absent);
  return request;
}
}  // namespace detail

// `shape` says which optional arguments are present and how long vectors are: shape_of(args), or written out:
// ModelArgs<Shape> shape; shape.bias = present; shape.layers.resize(32);
template <template <template <class> class> class Args, class R>
Compiled<Args, R> compile(const Function<Args, R>& function, const Args<Shape>& shape, Extents extents,
                          const CompileOptions& options = {}) {
  detail::Traced<R> traced = function.trace_with_results(shape);
  detail::check_extents(*traced.graph, extents);
  detail::CompileRequest request = detail::compile_request<Args>(traced.graph, shape, std::move(extents), options);
  detail::add_paths(traced.result, request.outputs, nullptr);
  return {detail::compile_core(std::move(request)), std::move(traced.result)};
}
template <template <template <class> class> class Args, class R>
Compiled<Args, R> compile(const Function<Args, R>& function, Extents extents, const CompileOptions& options = {}) {
  return compile(function, Args<Shape>{}, std::move(extents), options);
}

}  // namespace tigon
