// The parameter block, scratch and compilation of nests under test.
#include "loops_run.hpp"

#include <cstring>

#include "codegen/llvm/printer.hpp"
#include "codegen/llvm/subset.hpp"
#include "runtime/cpu_features.hpp"

namespace tigon::testing {

using loops::Bind;

std::vector<lower::CpuMachine> machines() {
  std::vector<lower::CpuMachine> result;
  const int widest = runtime::vector_bytes(runtime::host_target());
  for (int bytes = widest; bytes >= 16; bytes /= 2) result.push_back(lower::cpu_machine(bytes));
  return result;
}

std::string nest_text(const loops::Nest& nest, const lower::CpuMachine& machine) {
  return llvm::print_llvm(lower::lower_cpu(nest, machine));
}

NestKernel compile_nest(const loops::Nest& nest, const lower::CpuMachine& machine) {
  const lower::Lowered lowered = lower::lower_cpu(nest, machine);
  NestKernel kernel{nest, llvm::print_llvm(lowered), lowered.scratch_bytes, nullptr};
  INFO(kernel.text);
  REQUIRE(llvm::outside_subset(kernel.text) == "");
  const auto& compiler = runtime::LlvmCompiler::get();
  kernel.object = runtime::load_object(compiler.compile(kernel.text, runtime::host_target()));
  return kernel;
}

void run_nest(const NestKernel& kernel, const NestLaunch& launch, std::int64_t step) {
  const loops::Nest& nest = kernel.nest;
  std::vector<std::uint64_t> cells;
  for (void* pointer : launch.pointers) cells.push_back(reinterpret_cast<std::uint64_t>(pointer));
  REQUIRE(cells.size() == nest.parameters.size());
  std::int64_t partitions = 0;
  for (const std::int64_t count : launch.partitions) partitions += count;
  for (const loops::Slot& slot : nest.slots) {
    std::int64_t value = 0;
    const std::string axis = slot.axis < nest.axes.size() ? nest.axes[slot.axis].name : "";
    switch (slot.kind) {
      case loops::SlotKind::extent:
      case loops::SlotKind::global_extent:
        value = launch.extents.at(axis);
        break;
      case loops::SlotKind::origin:
        value = launch.origins.count(axis) != 0 ? launch.origins.at(axis) : 0;
        break;
      case loops::SlotKind::stride:
        value = launch.strides.at({slot.parameter, slot.dimension});
        break;
      case loops::SlotKind::partitions:
        value = launch.partitions.at(slot.part);
        break;
    }
    cells.push_back(static_cast<std::uint64_t>(value));
  }
  for (std::size_t i = 0; i < launch.scalars.size(); ++i) {
    std::uint64_t cell = 0;
    std::memcpy(&cell, &launch.scalars[i], sizeof(float));
    cells.push_back(cell);
  }
  std::vector<std::byte> scratch(static_cast<std::size_t>(kernel.scratch_bytes) + 64, std::byte{0xff});
  auto address = reinterpret_cast<std::uintptr_t>(scratch.data());
  address = (address + 63) / 64 * 64;
  using Entry = void (*)(const void*, std::int64_t, std::int64_t, void*);
  const auto entry = reinterpret_cast<Entry>(kernel.object->symbol(nest.name));
  if (step == 0) step = std::max<std::int64_t>(partitions, 1);
  for (std::int64_t first = 0; first < partitions; first += step)
    entry(cells.data(), first, std::min(first + step, partitions), reinterpret_cast<void*>(address));
}

Rows::Rows(const std::string& name, std::int64_t columns) {
  builder.nest.name = name;
  row_axis = builder.axis("row");
  column_axis = builder.axis("column", columns);
}

loops::ParameterId Rows::matrix(const std::string& name, DType dtype, loops::Access access) {
  const std::int64_t pitch = builder.nest.axes[column_axis].extent;
  const auto id = builder.parameter({name, dtype, {row_axis, column_axis}, {pitch, 1}, access, ""});
  if (pitch == loops::at_run_time) builder.stride(id, 0);
  return id;
}

loops::ParameterId Rows::vector_of(std::uint16_t axis, const std::string& name, DType dtype, loops::Access access) {
  return builder.parameter({name, dtype, {axis}, {1}, access, ""});
}

std::size_t Rows::rows_part(const std::function<void(loops::Block&, loops::ExprId)>& fill,
                            std::vector<loops::FoldId> row_folds) {
  const std::size_t number = builder.part("rows");
  const auto part = static_cast<std::uint16_t>(number);
  const loops::ExprId partition = builder.loop_index(builder.nest.parts[number].grid.id);
  const loops::ExprId count = builder.extent(row_axis);
  const loops::ExprId share = builder.ceil_div(count, builder.partitions(part));
  const loops::ExprId begin = builder.min(builder.mul(partition, share), count);
  const loops::ExprId end = builder.min(builder.add(begin, share), count);
  loops::Loop loop = builder.loop("row", Bind::rows, begin, end);
  loop.folds = std::move(row_folds);
  fill(loop.body, builder.loop_index(loop.id));
  builder.nest.parts[number].grid.body.push_back(statement(std::move(loop)));
  return number;
}

loops::Loop Rows::lanes() {
  return builder.loop("column", Bind::lanes, builder.integer(0), builder.extent(column_axis));
}

std::vector<float> numbers(std::size_t count, unsigned seed) {
  std::vector<float> result(count);
  std::uint32_t state = seed * 2654435761u + 12345u;
  for (float& x : result) {
    state = state * 1664525u + 1013904223u;
    x = static_cast<float>(state >> 8) / 8388608.0F - 1.0F;
  }
  return result;
}

}  // namespace tigon::testing
