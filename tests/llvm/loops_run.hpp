// Compiles nests for the host and runs them on plain arrays.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "codegen/loops/builder.hpp"
#include "codegen/lower/cpu.hpp"
#include "runtime/llvm/compiler.hpp"

namespace tigon::testing {

struct NestKernel {
  loops::Nest nest;
  std::string text;
  std::int64_t scratch_bytes = 0;
  std::shared_ptr<runtime::LoadedObject> object;
};

struct NestLaunch {
  std::vector<void*> pointers;                  // by parameter
  std::map<std::string, std::int64_t> extents;  // by axis: extent and whole extent
  std::map<std::string, std::int64_t> origins;  // by axis
  std::vector<std::int64_t> partitions;         // by part
  std::vector<float> scalars;
  std::map<std::pair<int, int>, std::int64_t> strides;  // by parameter and dimension
};

// Machines that the host can run: its own vectors with masks, and the narrower ones without.
std::vector<lower::CpuMachine> machines();

std::string nest_text(const loops::Nest& nest, const lower::CpuMachine& machine);
NestKernel compile_nest(const loops::Nest& nest, const lower::CpuMachine& machine);
// All partitions in one call, or one call for each share [k * step, (k + 1) * step).
void run_nest(const NestKernel& kernel, const NestLaunch& launch, std::int64_t step = 0);

// Parameters and grids of row-major arrays, shortly.
struct Rows {
  loops::NestBuilder builder;
  std::uint16_t row_axis, column_axis;
  explicit Rows(const std::string& name, std::int64_t columns = loops::at_run_time);
  loops::ParameterId matrix(const std::string& name, DType dtype = DType::f32,
                            loops::Access access = loops::Access::read);
  loops::ParameterId vector_of(std::uint16_t axis, const std::string& name, DType dtype = DType::f32,
                               loops::Access access = loops::Access::read);
  // A part whose grid shares out the rows; `fill` gets the body and the row index. Returns the part's number.
  std::size_t rows_part(const std::function<void(loops::Block&, loops::ExprId row)>& fill,
                        std::vector<loops::FoldId> row_folds = {});
  loops::Loop lanes();
  loops::ExprId index(const loops::Loop& loop) { return builder.loop_index(loop.id); }
};

std::vector<float> numbers(std::size_t count, unsigned seed = 1);

}  // namespace tigon::testing
