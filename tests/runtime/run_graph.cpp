// Plans, compiles, binds and launches a graph, with guard bytes around every output.
#include "run_graph.hpp"

#include <cstring>

#include "runtime/bound.hpp"
#include "runtime/compiled.hpp"
#include "tigon/buffer.hpp"

namespace tigon::test {
namespace {

template <class Visit>
void visit_dtype(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::boolean:
      visit(std::uint8_t{});
      break;
    case DType::i32:
      visit(i32{});
      break;
    case DType::i64:
      visit(i64{});
      break;
    case DType::f16:
      visit(f16{});
      break;
    case DType::bf16:
      visit(bf16{});
      break;
    case DType::f32:
      visit(f32{});
      break;
    case DType::f64:
      visit(f64{});
      break;
  }
}
template <class T>
T narrow(double value) {
  if constexpr (std::is_same_v<T, bf16>)
    return to_bf16(static_cast<float>(value));
  else if constexpr (std::is_same_v<T, f16>)
    return to_f16(static_cast<float>(value));
  else
    return static_cast<T>(value);
}
template <class T>
double widen(T value) {
  if constexpr (std::is_same_v<T, bf16> || std::is_same_v<T, f16>)
    return static_cast<double>(to_f32(value));
  else
    return static_cast<double>(value);
}

}  // namespace

std::vector<std::byte> to_bytes(DType dtype, const std::vector<double>& values) {
  std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(size_of(dtype)));
  visit_dtype(dtype, [&]<class T>(T) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const T value = narrow<T>(values[i]);
      std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
    }
  });
  return bytes;
}

std::vector<double> to_doubles(DType dtype, const std::vector<std::byte>& bytes) {
  std::vector<double> values(bytes.size() / static_cast<std::size_t>(size_of(dtype)));
  visit_dtype(dtype, [&]<class T>(T) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      T value;
      std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
      values[i] = widen(value);
    }
  });
  return values;
}

GraphRun run_on_cpu(const dsl::Graph& graph, const dsl::Extents& extents, const dsl::EvaluateInputs& inputs,
                    const plan::PlanOptions& options, int max_threads) {
  constexpr std::size_t guard = 64;
  const auto program = runtime::build_program(plan::plan(graph, extents, runtime::cpu_model(), options));
  dsl::Extents given = inputs.extents.empty() ? extents : inputs.extents;
  const runtime::Bound bound(program, plan::bind_extents(program->plan, given), {}, {});
  std::vector<Storage> memory;
  std::vector<void*> in, out;
  std::vector<std::size_t> sizes;
  for (const dsl::TensorValue& tensor : inputs.tensors) {
    const std::vector<std::byte> bytes = to_bytes(tensor.dtype, tensor.value);
    memory.emplace_back(bytes.size() + guard);
    if (!bytes.empty()) std::memcpy(memory.back().data(), bytes.data(), bytes.size());
    in.push_back(memory.back().data());
  }
  for (const dsl::OutputInfo& output : graph.outputs) {
    std::size_t size = static_cast<std::size_t>(size_of(output.dtype));
    for (const dsl::AxisId axis : output.axes) size *= static_cast<std::size_t>(bound.extents()[axis]);
    sizes.push_back(size);
    memory.emplace_back(size + 2 * guard);
    std::memset(memory.back().data(), 0x5a, size + 2 * guard);
    out.push_back(static_cast<std::byte*>(memory.back().data()) + guard);
  }
  const Storage workspace(static_cast<std::size_t>(bound.workspace_bytes()) + guard);
  std::memset(workspace.data(), 0x7f, workspace.bytes());  // NaN-like: what is read before it is written shows
  const std::vector<detail::RawScalar> scalars = runtime::raw_scalars(graph.scalars, inputs.scalars);
  bound.run({.inputs = in, .outputs = out, .scalars = scalars, .workspace = workspace.data()},
            {.max_threads = max_threads});
  GraphRun result;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto* begin = static_cast<const std::byte*>(out[i]);
    for (std::size_t g = 1; g <= guard; ++g) {
      if (begin[-static_cast<std::ptrdiff_t>(g)] != std::byte{0x5a} || begin[sizes[i] + g - 1] != std::byte{0x5a}) {
        throw std::runtime_error(fmt::format("output {} was written outside its memory", graph.outputs[i].name));
      }
    }
    result.bytes.emplace_back(begin, begin + sizes[i]);
    result.outputs.push_back(to_doubles(graph.outputs[i].dtype, result.bytes.back()));
  }
  result.launches = bound.launches();
  result.matmuls = bound.matmuls();
  result.workspace_bytes = bound.workspace_value_bytes();
  return result;
}

}  // namespace tigon::test
