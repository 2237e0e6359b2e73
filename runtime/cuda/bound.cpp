// The hot path on a GPU: pointers, origins and scalars into a parameter block on the stack, and one call for each step.
#include "runtime/cuda/bound.hpp"

#include "runtime/cuda/fill.hpp"
#include "runtime/cuda/matmul.hpp"
#include "runtime/program.hpp"
#include "tigon/buffer.hpp"
#include "tigon/error.hpp"

namespace tigon::runtime {
namespace {

// The driver takes 4 KiB of parameters from any kernel, each a cell of 8 bytes.
constexpr std::size_t most_cells = 4096 / 8;
constexpr std::uint64_t vector_alignment = 16;

class CudaBound final : public DeviceBound {
 public:
  CudaBound(std::shared_ptr<const CudaProgram> program, dsl::Extents extents, const std::vector<Strides>& input_strides,
            const std::vector<Strides>& output_strides)
      : program_(std::move(program)),
        prepared_(prepare_plan(program_->plan, std::move(extents), input_strides, output_strides)) {
    const CurrentContext context(*program_->device);
    if (static_cast<std::size_t>(prepared_.most_cells) > most_cells) {
      throw Error({.kind = ErrorKind::usage,
                   .function = program_->plan.name,
                   .found = fmt::format("{} bytes of parameters", prepared_.most_cells * 8),
                   .expected = fmt::format("at most {}", most_cells * 8),
                   .cure = "Split the function: one for each few of its buffers"},
                  "a kernel has more parameters than a GPU takes");
    }
    for (const MatmulSpec& spec : prepared_.matmuls) {
      matmuls_.push_back(std::make_unique<const CudaMatmul>(spec, *program_->device));
      matmul_bytes_ = std::max(matmul_bytes_, static_cast<std::int64_t>(matmuls_.back()->workspace_bytes()));
    }
    if (prepared_.zero_bytes > 0) {
      zeros_ = Storage(static_cast<std::size_t>(prepared_.zero_bytes), Device::cuda(program_->device->ordinal));
      const CudaDriver& driver = CudaDriver::get();
      driver.check(
          driver.api().fill_8_async(reinterpret_cast<cuda_c::Pointer>(zeros_.data()), 0, zeros_.bytes(), nullptr),
          "cuMemsetD8Async");
      driver.check(driver.api().stream_synchronize(nullptr), "cuStreamSynchronize");
    }
    load(prepared_.steps);
  }

  [[nodiscard]] std::int64_t workspace_bytes() const override { return prepared_.layout.bytes + matmul_bytes_; }
  [[nodiscard]] std::int64_t launches() const override { return prepared_.launches + prepared_.products; }

  [[nodiscard]] bool try_run(const Stream& stream, const LaunchArguments& arguments) const override {
    const CurrentContext context(*program_->device);
    Run run{*this, arguments, static_cast<cuda_c::Stream>(stream.native())};
    ChunkOrigins origins{};
    run_steps(prepared_.steps, origins, run);
    count_launches(static_cast<std::uint64_t>(prepared_.launches));
    return true;
  }

 private:
  // Kernels that need another class than the best one, as far as layouts and chunks tell.
  void load(const std::vector<PreparedStep>& steps) const {
    for (const PreparedStep& step : steps) {
      if (const auto* launch = std::get_if<PreparedLaunch>(&step.node)) {
        bool aligned = true;
        for (const PointerPatch& patch : launch->pointers) {
          for (std::uint32_t i = 0; i < patch.offset_count; ++i) {
            const auto stride = static_cast<std::uint64_t>(prepared_.offsets[patch.first_offset + i].byte_stride);
            aligned = aligned && stride % vector_alignment == 0;
          }
        }
        program_->kernel(launch->kernel, {true, launch->dense}, nullptr);
        if (!aligned) program_->kernel(launch->kernel, {false, launch->dense}, nullptr);
      } else if (const auto* loop = std::get_if<PreparedLoop>(&step.node)) {
        load(loop->full);
        load(loop->last);
      }
    }
  }

  struct Run {
    const CudaBound& bound;
    const LaunchArguments& arguments;
    cuda_c::Stream stream;

    cuda_c::Pointer address(const PointerPatch& patch, const ChunkOrigins& origins) const {
      return reinterpret_cast<cuda_c::Pointer>(patched_address(bound.prepared_, patch, arguments,
                                                               static_cast<std::byte*>(arguments.workspace),
                                                               static_cast<std::byte*>(bound.zeros_.data()), origins));
    }

    void launch(const PreparedLaunch& launch, const ChunkOrigins& origins) const {
      std::array<std::uint64_t, most_cells> cells;
      std::array<void*, most_cells> parameters;
      std::copy(launch.cells.begin(), launch.cells.end(), cells.begin());
      std::uint64_t all = 0;
      for (const PointerPatch& patch : launch.pointers) {
        cells[patch.cell] = address(patch, origins);
        all |= cells[patch.cell];
      }
      patch_scalars(launch, arguments.scalars, origins, cells.data());
      if (launch.error_cell >= 0) cells[static_cast<std::size_t>(launch.error_cell)] = bound.program_->error->address();
      for (std::size_t i = 0; i < launch.cells.size(); ++i) parameters[i] = &cells[i];
      std::int64_t blocks = 0;
      for (const std::int64_t part : launch.parts) blocks += part;
      if (blocks == 0) return;
      const CudaKernel& kernel =
          bound.program_->kernel(launch.kernel, {all % vector_alignment == 0, launch.dense}, stream);
      const cuda_c::LaunchConfig config{
          .grid_x = static_cast<unsigned>(blocks), .block_x = static_cast<unsigned>(kernel.threads), .stream = stream};
      const CudaDriver& driver = CudaDriver::get();
      driver.check(driver.api().launch(&config, kernel.function, parameters.data(), nullptr), "cuLaunchKernelEx");
    }

    void multiply(const PreparedProduct& product, const ChunkOrigins& origins) const {
      std::byte* workspace = static_cast<std::byte*>(arguments.workspace) + bound.prepared_.layout.bytes;
      bound.matmuls_[product.matmul]->execute(address(product.a, origins), address(product.b, origins),
                                              address(product.c, origins), workspace, stream);
    }

    void fill(const PreparedFill& fill, const ChunkOrigins& origins) const {
      fill_memory(fill, address(fill.target, origins), stream);
    }
  };

  std::shared_ptr<const CudaProgram> program_;
  PreparedPlan prepared_;
  std::vector<std::unique_ptr<const CudaMatmul>> matmuls_;
  std::int64_t matmul_bytes_ = 0;
  Storage zeros_;
};

}  // namespace

std::unique_ptr<const DeviceBound> bind_cuda(std::shared_ptr<const CudaProgram> program, dsl::Extents extents,
                                             const std::vector<Strides>& input_strides,
                                             const std::vector<Strides>& output_strides) {
  return std::make_unique<CudaBound>(std::move(program), std::move(extents), input_strides, output_strides);
}

}  // namespace tigon::runtime
