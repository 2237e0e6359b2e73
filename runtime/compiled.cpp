// compile: graph, plan and kernels for a function; launches check their buffers, find the bind and run it.
#include <atomic>
#include <mutex>
#include <set>

#include "dsl/rebuild.hpp"
#include "runtime/binding.hpp"
#include "runtime/cache/cache.hpp"
#include "runtime/compiled.hpp"
#include "runtime/cpu/device_program.hpp"
#include "runtime/cpu_features.hpp"
#include "runtime/cuda/matmul.hpp"
#include "runtime/cuda/program.hpp"
#include "runtime/environment.hpp"
#include "runtime/index_guard.hpp"
#include "runtime/index_report.hpp"
#include "runtime/launch_checks.hpp"
#include "tigon/buffer.hpp"
#include "tigon/detail/compiled.hpp"
#include "tigon/error.hpp"

namespace tigon::runtime {
using detail::RawBuffer;
using dsl::AxisId;

namespace {

constexpr int absent = -1;

// Where each graph input (or output) stands in a launch's span; `absent` if the request does not have it.
std::vector<int> positions(const std::vector<std::string>& graph_names, const std::vector<std::string>& requested) {
  std::vector<int> result;
  for (const std::string& name : graph_names) {
    const auto found = std::find(requested.begin(), requested.end(), name);
    result.push_back(found == requested.end() ? absent : static_cast<int>(found - requested.begin()));
  }
  return result;
}

template <class Infos>
std::vector<std::string> names_of(const Infos& infos) {
  std::vector<std::string> names;
  for (const auto& info : infos) names.push_back(info.name);
  return names;
}

class CompiledFunction final : public detail::CompiledCore {
 public:
  CompiledFunction(detail::CompileRequest request, std::shared_ptr<const DeviceProgram> program, std::int64_t compiled,
                   std::shared_ptr<CompiledFunction> guard = nullptr)
      : CompiledCore(std::move(request)),
        program_(std::move(program)),
        guard_(std::move(guard)),
        compilations_(compiled) {
    const plan::Plan& plan = program_->plan();
    input_at_ = positions(names_of(plan.inputs), this->request().inputs);
    output_at_ = positions(names_of(plan.outputs), this->request().outputs);
    scalar_at_ = positions(names_of(plan.scalars), this->request().scalars);
    const dsl::Graph& graph = *this->request().graph;
    const std::vector<bool> live = dsl::live_nodes(graph);
    for (const dsl::InputInfo& info : graph.inputs) {
      if (!live[info.node]) unread_.insert(info.name);
    }
    const std::vector<std::string> traced = names_of(graph.inputs);
    for (const std::size_t input : this->request().absent) {
      if (std::find(traced.begin(), traced.end(), this->request().inputs[input]) == traced.end())
        absent_.push_back(input);
    }
    ranges_ = given_ranges(plan, graph, this->request().extents);
  }

  ~CompiledFunction() override {
    for (std::atomic<const Binding*>& slot : bindings_) delete slot.load();
  }

  [[nodiscard]] const DeviceProgram& program() const { return *program_; }

  void launch(const Stream& stream, std::span<const RawBuffer> inputs, std::span<const detail::RawScalar> scalars,
              std::span<const RawBuffer> outputs, void* workspace, std::size_t workspace_bytes) override {
    check_stream(stream);
    check_counts(*this, inputs, scalars, outputs);
    check_absent(inputs);
    const Binding& binding = find(inputs, outputs);
    const std::size_t needed = needed_bytes(binding, inputs);
    if (workspace_bytes < needed || reinterpret_cast<std::uintptr_t>(workspace) % 64 != 0 || workspace == nullptr) {
      throw Error({.kind = ErrorKind::usage,
                   .function = program_->plan().name,
                   .argument = "workspace",
                   .found = fmt::format("{} bytes at {}", workspace_bytes, workspace),
                   .expected = fmt::format("{} bytes aligned to 64", needed),
                   .cure = "Ask workspace_bytes(args)"},
                  "the workspace is too small or not aligned");
    }
    run(stream, binding, inputs, scalars, outputs, workspace);
  }

  std::shared_ptr<void> launch_pooled(const Stream& stream, std::span<const RawBuffer> inputs,
                                      std::span<const detail::RawScalar> scalars,
                                      std::span<RawBuffer> outputs) override {
    check_counts(*this, inputs, scalars, outputs);
    const dsl::Extents extents = extents_of(inputs);
    const plan::Plan& plan = program_->plan();
    std::size_t bytes = 0;
    std::vector<std::size_t> offsets(plan.outputs.size(), 0);
    for (RawBuffer& output : outputs) output = RawBuffer{};
    for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
      if (output_at_[i] == absent) continue;
      RawBuffer& raw = outputs[static_cast<std::size_t>(output_at_[i])];
      const dsl::OutputInfo& info = plan.outputs[i];
      raw.dtype = info.dtype;
      raw.device = program_->device();
      const std::vector<AxisId>& axes = caller_axes(info);
      raw.rank = static_cast<std::uint8_t>(axes.size());
      std::int64_t count = 1;
      for (std::size_t d = axes.size(); d-- > 0;) {
        raw.extents[d] = extents[axes[d]];
        raw.strides[d] = count;
        if (__builtin_mul_overflow(count, std::max<std::int64_t>(raw.extents[d], 1), &count) || count > largest_span) {
          refuse(info.name, plan.axes[axes[d]].name, std::to_string(raw.extents[d]),
                 fmt::format("at most {} elements in all", largest_span), "Launch it on smaller arguments",
                 "the result cannot be addressed");
        }
      }
      if (info.mode == dsl::OutputMode::alias) {
        raw = inputs[static_cast<std::size_t>(input_at_[static_cast<std::size_t>(info.alias_input)])];
        continue;
      }
      offsets[i] = bytes + 1;  // 0: not in the storage
      bytes += static_cast<std::size_t>((count * size_of(info.dtype) + 63) / 64 * 64);
    }
    check_stream(stream);
    check_absent(inputs);
    std::shared_ptr<void> storage = program_->allocate(stream, std::max<std::size_t>(bytes, 64));
    for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
      if (offsets[i] == 0) continue;
      outputs[static_cast<std::size_t>(output_at_[i])].pointer =
          static_cast<std::byte*>(storage.get()) + offsets[i] - 1;
      if (plan.outputs[i].mode == dsl::OutputMode::accumulate) {
        throw Error({.kind = ErrorKind::usage,
                     .function = plan.name,
                     .argument = plan.outputs[i].name,
                     .cure = "Use into(...) with a buffer of yours"},
                    "an output that accumulates needs a buffer to add to");
      }
    }
    const Binding& binding = find(inputs, outputs);
    const std::shared_ptr<void> workspace =
        program_->allocate(stream, std::max<std::size_t>(needed_bytes(binding, inputs), 64));
    run(stream, binding, inputs, scalars, outputs, workspace.get());
    return storage;
  }

  [[nodiscard]] std::size_t workspace_bytes() const override {
    const auto own = static_cast<std::size_t>(program_->bind(program_->plan().planned, {}, {})->workspace_bytes());
    return guard_ == nullptr ? own : std::max(own, guard_->workspace_bytes());
  }
  [[nodiscard]] std::size_t workspace_bytes(std::span<const RawBuffer> inputs) override {
    const auto own = static_cast<std::size_t>(program_->bind(extents_of(inputs), {}, {})->workspace_bytes());
    return guard_ == nullptr ? own : std::max(own, guard_->workspace_bytes(inputs));
  }
  [[nodiscard]] Counters counters() const override { return {launches_.load(), binds_.load(), compilations_}; }

 private:
  static constexpr std::size_t binding_slots = 16;

  [[noreturn]] void refuse(const std::string& argument, const std::string& axis, const std::string& found,
                           const std::string& expected, const std::string& cure, const std::string& sentence) const {
    refuse_launch(program_->plan().name, argument, axis, found, expected, cure, sentence);
  }

  // Of a guard: see runtime/index_guard.hpp.
  std::int32_t count_wrong(const Stream& stream, std::span<const RawBuffer> inputs,
                           std::span<const detail::RawScalar> scalars, void* workspace) {
    std::int32_t wrong = 0;
    const RawBuffer output{&wrong, DType::i32, 0, Device::cpu(), {}, {}};
    run(stream, find(inputs, {&output, 1}), inputs, scalars, {&output, 1}, workspace);
    return wrong;
  }

  std::size_t needed_bytes(const Binding& binding, std::span<const RawBuffer> inputs) const {
    auto bytes = static_cast<std::size_t>(binding.bound->workspace_bytes());
    if (guard_ != nullptr) {
      std::int32_t wrong = 0;
      const RawBuffer output{&wrong, DType::i32, 0, Device::cpu(), {}, {}};
      bytes = std::max(bytes, guard_->needed_bytes(guard_->find(inputs, {&output, 1}), inputs));
    }
    return bytes;
  }

  // Its value would be ignored.
  void check_absent(std::span<const RawBuffer> inputs) const {
    for (const std::size_t input : absent_) {
      if (inputs[input].pointer == nullptr) continue;
      refuse(request().inputs[input], "", "a buffer", "none",
             "Compile for it: compile(function, shape_of(args), ...), or set its slot in the Shape to `present`",
             "an optional argument is given that the function was compiled without");
    }
  }

  void check_stream(const Stream& stream) const {
    if (stream.device() == program_->device()) return;
    refuse("stream", "", stream.device().name(), program_->device().name(),
           "Launch on a stream of the device that the function was compiled for", "the stream is of another device");
  }

  // An argument that the function does not read may be missing.
  bool left_out(std::size_t input, const RawBuffer& raw) const {
    return raw.pointer == nullptr && unread_.contains(program_->plan().inputs[input].name);
  }
  BufferName input_name(std::size_t i) const {
    const plan::Plan& plan = program_->plan();
    return {plan.name, plan.inputs[i].name, plan.axes, plan.inputs[i].axes};
  }
  BufferName output_name(std::size_t i) const {
    const plan::Plan& plan = program_->plan();
    return {plan.name, plan.outputs[i].name, plan.axes, caller_axes(plan.outputs[i])};
  }

  void meet(dsl::Extents& extents, std::vector<int>& from, AxisId axis, std::int64_t extent, int input,
            std::span<const RawBuffer> inputs) const {
    const plan::Plan& plan = program_->plan();
    if (extents[axis] >= 0 && extents[axis] != extent) {
      // The extents of a buffer that was left out are 0.
      for (const int i : {input, from[axis]}) {
        if (i == absent) continue;
        const auto at = static_cast<std::size_t>(i);
        if (inputs[static_cast<std::size_t>(input_at_[at])].pointer == nullptr) refuse_null(input_name(at));
      }
      const std::string other = from[axis] == absent
                                    ? "the axis' type"
                                    : "argument `" + plan.inputs[static_cast<std::size_t>(from[axis])].name + "`";
      refuse(plan.inputs[static_cast<std::size_t>(input)].name, plan.axes[axis].name, std::to_string(extent),
             fmt::format("{} (from {})", extents[axis], other), "", "the axis has two extents");
    }
    extents[axis] = extent;
    from[axis] = input;
  }

  // Checks inputs and completes the extents; off the hot path.
  dsl::Extents extents_of(std::span<const RawBuffer> inputs) const {
    const plan::Plan& plan = program_->plan();
    dsl::Extents extents(plan.axes.size(), -1);
    std::vector<int> from(plan.axes.size(), absent);
    for (std::size_t axis = 0; axis < plan.axes.size(); ++axis) extents[axis] = plan.axes[axis].fixed;
    for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
      const dsl::InputInfo& info = plan.inputs[i];
      if (input_at_[i] == absent)
        refuse(info.name, "", "", "", "", "the function reads an argument that was not given");
      const RawBuffer& raw = inputs[static_cast<std::size_t>(input_at_[i])];
      if (left_out(i, raw)) continue;
      check_buffer(raw, info.dtype, program_->device(), input_name(i));
      for (std::size_t d = 0; d < info.axes.size(); ++d)
        meet(extents, from, info.axes[d], raw.extents[d], static_cast<int>(i), inputs);
    }
    // Axes that no input carries keep the extent they were compiled for.
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
      if (extents[axis] < 0 && !derived(static_cast<AxisId>(axis))) extents[axis] = plan.planned[axis];
    }
    extents.resize(plan.axes.size() - plan.partition_axes.size());
    extents = plan::bind_extents(plan, complete_parts(extents));
    for (const AxisRange& range : ranges_) {
      if (extents[range.axis] >= range.low && extents[range.axis] <= range.high) continue;
      const int input = from[range.axis];
      refuse(input == absent ? "" : plan.inputs[static_cast<std::size_t>(input)].name, plan.axes[range.axis].name,
             std::to_string(extents[range.axis]), fmt::format("{} to {}", range.low, range.high),
             "Compile with a range that holds it: from_to(low, high)",
             "the axis has an extent outside the range that the function was compiled for");
    }
    return extents;
  }

  // Parts of a split whose extents do not follow from the inputs keep the extent they were compiled for, inner parts
  // first.
  dsl::Extents complete_parts(dsl::Extents extents) const {
    const plan::Plan& plan = program_->plan();
    dsl::Graph relations;
    relations.name = plan.name;
    relations.axes.assign(plan.axes.begin(), plan.axes.begin() + static_cast<std::ptrdiff_t>(extents.size()));
    relations.splits = plan.splits;
    relations.equals = plan.equals;
    extents = dsl::resolve_extents(relations, std::move(extents));
    for (const bool inner : {true, false}) {
      for (const dsl::SplitRelation& split : plan.splits) {
        const AxisId axis = inner ? split.inner : split.outer;
        if (extents[axis] >= 0) continue;
        extents[axis] = plan.planned[axis];
        extents = dsl::resolve_extents(relations, std::move(extents));
      }
    }
    return extents;
  }

  bool derived(AxisId axis) const {
    const plan::Plan& plan = program_->plan();
    for (const dsl::SplitRelation& split : plan.splits) {
      if (split.whole == axis || split.outer == axis || split.inner == axis) return true;
    }
    for (const dsl::EqualRelation& equal : plan.equals) {
      if (equal.a == axis || equal.b == axis) return true;
    }
    return false;
  }

  const Binding& find(std::span<const RawBuffer> inputs, std::span<const RawBuffer> outputs) {
    for (const std::atomic<const Binding*>& slot : bindings_) {
      const Binding* binding = slot.load(std::memory_order_acquire);
      if (binding == nullptr) break;
      if (fits(*binding, inputs, outputs)) return *binding;
    }
    return bind(inputs, outputs);
  }

  const RawBuffer& output_buffer(std::size_t i, std::span<const RawBuffer> inputs,
                                 std::span<const RawBuffer> outputs) const {
    const dsl::OutputInfo& info = program_->plan().outputs[i];
    const RawBuffer& own = outputs[static_cast<std::size_t>(output_at_[i])];
    if (info.mode != dsl::OutputMode::alias || own.pointer != nullptr) return own;
    return inputs[static_cast<std::size_t>(input_at_[static_cast<std::size_t>(info.alias_input)])];
  }

  bool fits(const Binding& binding, std::span<const RawBuffer> inputs, std::span<const RawBuffer> outputs) const {
    for (std::size_t i = 0; i < binding.inputs.size(); ++i) {
      if (!same_shape(binding.inputs[i], inputs[static_cast<std::size_t>(input_at_[i])])) return false;
    }
    for (std::size_t i = 0; i < binding.outputs.size(); ++i) {
      if (!same_shape(binding.outputs[i], output_buffer(i, inputs, outputs))) return false;
    }
    return true;
  }

  static Strides strides_of(const RawBuffer& raw) {
    Strides strides;
    for (std::size_t d = 0; d < raw.rank; ++d) strides.push_back(raw.strides[d]);
    if (!strides.empty()) strides.back() = 1;
    return strides;
  }

  const Binding& bind(std::span<const RawBuffer> inputs, std::span<const RawBuffer> outputs) {
    const std::lock_guard lock(mutex_);
    const plan::Plan& plan = program_->plan();
    std::size_t free = binding_slots;
    for (std::size_t i = 0; i < binding_slots; ++i) {
      const Binding* binding = bindings_[i].load(std::memory_order_acquire);
      if (binding == nullptr) {
        free = i;
        break;
      }
      if (fits(*binding, inputs, outputs)) return *binding;
    }
    for (const std::unique_ptr<const Binding>& binding : overflow_) {
      if (fits(*binding, inputs, outputs)) return *binding;
    }
    const dsl::Extents extents = extents_of(inputs);
    std::vector<RawBuffer> in, out;
    std::vector<Strides> in_strides, out_strides;
    for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
      in.push_back(inputs[static_cast<std::size_t>(input_at_[i])]);
      in_strides.push_back(strides_of(in.back()));
    }
    for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
      const dsl::OutputInfo& info = plan.outputs[i];
      if (output_at_[i] == absent)
        refuse(info.name, "", "", "", "", "the function has a result that was not asked for");
      const RawBuffer& raw = output_buffer(i, inputs, outputs);
      const std::vector<AxisId>& axes = caller_axes(info);
      check_buffer(raw, info.dtype, program_->device(), output_name(i));
      check_written(raw, output_name(i));
      Strides strides;
      const Strides given = strides_of(raw);
      for (std::size_t d = 0; d < axes.size(); ++d) {
        if (raw.extents[d] != extents[axes[d]]) {
          if (raw.pointer == nullptr) refuse_null(output_name(i));
          refuse(info.name, plan.axes[axes[d]].name, std::to_string(raw.extents[d]), std::to_string(extents[axes[d]]),
                 "", "the result's buffer has another extent");
        }
        append_strides(plan, extents, info.axes, axes[d], given[d], strides);
      }
      if (strides.size() != info.axes.size()) {
        throw Error({.kind = ErrorKind::internal, .function = plan.name, .argument = info.name},
                    "a result's axes are no parts of those it is declared with");
      }
      out.push_back(raw);
      out_strides.push_back(std::move(strides));
    }
    auto binding =
        std::make_unique<Binding>(std::move(in), std::move(out), program_->bind(extents, in_strides, out_strides));
    binds_.fetch_add(1, std::memory_order_relaxed);
    if (free < binding_slots) {
      bindings_[free].store(binding.get(), std::memory_order_release);
      return *binding.release();
    }
    // The table is full: further shapes stay until the function goes, for launches may be using any of them.
    overflow_.push_back(std::move(binding));
    return *overflow_.back();
  }

  // Outputs may not overlap anything but the input that they are declared to share, the workspace nothing at all.
  // Launches with the pointers of the one before are not looked at again.
  void check_apart(const Binding& binding, std::span<const RawBuffer> inputs, std::span<const RawBuffer> outputs,
                   const void* workspace) const {
    const plan::Plan& plan = program_->plan();
    std::uint64_t hash = 1469598103934665603ull;
    const auto mix = [&hash](const void* pointer) {
      hash = (hash ^ reinterpret_cast<std::uintptr_t>(pointer)) * 1099511628211ull;
    };
    for (std::size_t i = 0; i < plan.inputs.size(); ++i) mix(inputs[static_cast<std::size_t>(input_at_[i])].pointer);
    for (std::size_t i = 0; i < plan.outputs.size(); ++i) mix(output_buffer(i, inputs, outputs).pointer);
    mix(workspace);
    if (binding.checked_pointers.load(std::memory_order_relaxed) == hash) return;
    const auto begin = reinterpret_cast<std::uintptr_t>(workspace);
    const Bytes used{begin, begin + static_cast<std::uintptr_t>(binding.bound->workspace_bytes())};
    for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
      const RawBuffer& input = inputs[static_cast<std::size_t>(input_at_[i])];
      if (left_out(i, input)) continue;
      check_buffer(input, plan.inputs[i].dtype, program_->device(), input_name(i));
      check_outside(used, input, plan.inputs[i].name);
    }
    for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
      const RawBuffer& output = output_buffer(i, inputs, outputs);
      check_buffer(output, plan.outputs[i].dtype, program_->device(), output_name(i));
      check_outside(used, output, plan.outputs[i].name);
      const int alias = plan.outputs[i].mode == dsl::OutputMode::alias ? plan.outputs[i].alias_input : absent;
      if (alias != absent)
        check_shared(output, i, inputs[static_cast<std::size_t>(input_at_[static_cast<std::size_t>(alias)])]);
      for (std::size_t other = 0; other < plan.inputs.size() + i; ++other) {
        const bool is_input = other < plan.inputs.size();
        if (is_input && static_cast<int>(other) == alias) continue;
        const RawBuffer& raw = is_input ? inputs[static_cast<std::size_t>(input_at_[other])]
                                        : output_buffer(other - plan.inputs.size(), inputs, outputs);
        if (!overlap(output, raw)) continue;
        refuse(plan.outputs[i].name, "", "", "",
               is_input ? "Give the result memory of its own, or declare it as sharing that input"
                        : "Give each result memory of its own",
               fmt::format("the result's buffer overlaps that of `{}`",
                           is_input ? plan.inputs[other].name : plan.outputs[other - plan.inputs.size()].name));
      }
    }
    binding.checked_pointers.store(hash, std::memory_order_relaxed);
  }

  void check_outside(const Bytes& workspace, const RawBuffer& buffer, const std::string& name) const {
    const Bytes bytes = bytes_of(buffer);
    if (!workspace.meets(bytes)) return;
    refuse("workspace", "", fmt::format("bytes {:#x} to {:#x}", workspace.begin, workspace.end),
           fmt::format("none of `{}`'s, {:#x} to {:#x}", name, bytes.begin, bytes.end),
           "Give the workspace memory of its own", fmt::format("the workspace overlaps the buffer of `{}`", name));
  }

  // A result in place is written over its input: a buffer given for it must be the input's, in every stride.
  void check_shared(const RawBuffer& output, std::size_t i, const RawBuffer& input) const {
    const plan::Plan& plan = program_->plan();
    const std::string& of = plan.inputs[static_cast<std::size_t>(plan.outputs[i].alias_input)].name;
    if (output.pointer != input.pointer) {
      refuse(plan.outputs[i].name, "", fmt::format("{}", output.pointer),
             fmt::format("{}, that of `{}`", input.pointer, of),
             "Leave the result's buffer empty, or give it its input's", "a result in place has a buffer of its own");
    }
    for (std::size_t d = 0; d < output.rank; ++d) {
      if (output.extents[d] <= 1 || output.strides[d] == input.strides[d]) continue;
      refuse(plan.outputs[i].name, plan.axes[caller_axes(plan.outputs[i])[d]].name,
             fmt::format("a stride of {}", output.strides[d]), fmt::format("{}, that of `{}`", input.strides[d], of),
             "Leave the result's buffer empty, or give it its input's",
             "a result in place has other strides than its input");
    }
  }

  void run(const Stream& stream, const Binding& binding, std::span<const RawBuffer> inputs,
           std::span<const detail::RawScalar> scalars, std::span<const RawBuffer> outputs, void* workspace) {
    check_apart(binding, inputs, outputs, workspace);
    const plan::Plan& plan = program_->plan();
    constexpr std::size_t on_stack = 256;
    std::array<void*, on_stack> few;
    std::array<detail::RawScalar, 64> few_scalars;
    const std::size_t count = plan.inputs.size() + plan.outputs.size();
    thread_local std::vector<void*> many;  // grows once for functions with more buffers
    thread_local std::vector<detail::RawScalar> many_scalars;
    if (count > on_stack && many.size() < count) many.resize(count);
    if (plan.scalars.size() > few_scalars.size() && many_scalars.size() < plan.scalars.size())
      many_scalars.resize(plan.scalars.size());
    void** pointers = count > on_stack ? many.data() : few.data();
    detail::RawScalar* numbers = plan.scalars.size() > few_scalars.size() ? many_scalars.data() : few_scalars.data();
    for (std::size_t i = 0; i < plan.inputs.size(); ++i)
      pointers[i] = inputs[static_cast<std::size_t>(input_at_[i])].pointer;
    for (std::size_t i = 0; i < plan.outputs.size(); ++i) {
      pointers[plan.inputs.size() + i] = output_buffer(i, inputs, outputs).pointer;
    }
    for (std::size_t i = 0; i < plan.scalars.size(); ++i) numbers[i] = scalars[static_cast<std::size_t>(scalar_at_[i])];
    if (guard_ != nullptr && guard_->count_wrong(stream, inputs, scalars, workspace) > 0)
      refuse_indices(inputs, scalars);
    launches_.fetch_add(binding.bound->launches(), std::memory_order_relaxed);
    const bool indices_fit =
        binding.bound->try_run(stream, {.inputs = {pointers, plan.inputs.size()},
                                        .outputs = {pointers + plan.inputs.size(), plan.outputs.size()},
                                        .scalars = {numbers, plan.scalars.size()},
                                        .workspace = workspace});
    if (!indices_fit) refuse_indices(inputs, scalars);
  }

  // Looks for the index in the function as it was traced, whose arguments bear the user's names.
  [[noreturn]] void refuse_indices(std::span<const RawBuffer> inputs,
                                   std::span<const detail::RawScalar> scalars) const {
    const dsl::Graph& graph = *request().graph;
    std::vector<const RawBuffer*> given;
    dsl::Extents extents(graph.axes.size(), -1);
    const std::vector<int> input_at = positions(names_of(graph.inputs), request().inputs);
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      given.push_back(input_at[i] == absent ? nullptr : &inputs[static_cast<std::size_t>(input_at[i])]);
      if (given.back() == nullptr || given.back()->rank != graph.inputs[i].axes.size()) continue;
      for (std::size_t d = 0; d < graph.inputs[i].axes.size(); ++d)
        extents[graph.inputs[i].axes[d]] = given.back()->extents[d];
    }
    for (const detail::GivenExtent& entry : request().extents) {
      for (std::size_t axis = 0; axis < graph.axes.size(); ++axis) {
        if (graph.axes[axis].tag == entry.axis.tag && extents[axis] < 0) extents[axis] = entry.high;
      }
    }
    std::vector<detail::RawScalar> numbers;
    for (const int at : positions(names_of(graph.scalars), request().scalars))
      numbers.push_back(at == absent ? detail::RawScalar{} : scalars[static_cast<std::size_t>(at)]);
    refuse_index(graph, {dsl::resolve_extents(graph, std::move(extents)), given, numbers});
  }

  std::shared_ptr<const DeviceProgram> program_;
  std::shared_ptr<CompiledFunction> guard_;  // counts indices out of range before anything is written
  std::vector<int> input_at_, output_at_, scalar_at_;
  std::set<std::string> unread_;     // inputs, by path
  std::vector<std::size_t> absent_;  // inputs that the function was traced without
  std::vector<AxisRange> ranges_;    // that compile was given with from_to
  std::array<std::atomic<const Binding*>, binding_slots> bindings_{};
  std::vector<std::unique_ptr<const Binding>> overflow_;
  std::mutex mutex_;  // guards making a binding
  std::atomic<std::int64_t> launches_{0}, binds_{0};
  std::int64_t compilations_ = 0;
};

}  // namespace

const plan::Plan& plan_of(const detail::CompiledCore& core) {
  return dynamic_cast<const CompiledFunction&>(core).program().plan();
}

}  // namespace tigon::runtime

namespace tigon::detail {

std::shared_ptr<CompiledCore> compile_core(CompileRequest request) {
  runtime::check_environment();
  runtime::check_ranks(*request.graph);
  const Device wanted = request.options.device;
  const Device device = wanted.kind() == Device::Kind::best ? Device::best() : wanted;
  const std::uint64_t before = runtime::kernel_cache().counters().compiled;
  std::shared_ptr<const runtime::DeviceProgram> program;
  std::shared_ptr<runtime::CompiledFunction> guard;
  if (device.kind() == Device::Kind::cuda) {
    const runtime::CudaDevice& gpu = runtime::CudaDriver::get().device(device.ordinal());
    program = runtime::build_cuda_program(runtime::make_plan(*request.graph, request.extents, request.options,
                                                             runtime::cuda_model(gpu), runtime::has_cublas()),
                                          gpu, request.options.progress);
  } else {
    program = runtime::cpu_program(runtime::build_program(
        runtime::make_plan(*request.graph, request.extents, request.options, runtime::cpu_model()),
        request.options.progress));
    // A GPU cannot be asked in between without waiting for it.
    if (std::optional<dsl::Graph> counts = runtime::index_guard(*request.graph)) {
      CompileRequest check{std::make_shared<const dsl::Graph>(std::move(*counts)),
                           request.inputs,
                           request.scalars,
                           {runtime::guard_output},
                           request.extents,
                           {}};
      auto built =
          runtime::cpu_program(runtime::build_program(runtime::make_plan(*check.graph, check.extents, check.options)));
      guard = std::make_shared<runtime::CompiledFunction>(std::move(check), std::move(built), 0);
    }
  }
  if (const auto folder = runtime::environment_value("TIGON_DUMP")) program->dump(*folder);
  const std::uint64_t compiled = runtime::kernel_cache().counters().compiled - before;
  return std::make_shared<runtime::CompiledFunction>(std::move(request), std::move(program),
                                                     static_cast<std::int64_t>(compiled), std::move(guard));
}

}  // namespace tigon::detail
