// Runs a prepared plan on the CPU: shares of kernels over the pool, matmuls through the library, fills.
#include "runtime/bound.hpp"

#include <cstdlib>
#include <cstring>

#include "runtime/cpu/matmul.hpp"
#include "runtime/cpu/parallel.hpp"
#include "tigon/error.hpp"

namespace tigon::runtime {

struct Bound::Parts {
  std::shared_ptr<const Program> program;
  PreparedPlan prepared;
  std::vector<std::shared_ptr<const PreparedMatmul>> matmuls;
  std::vector<std::int64_t> kernel_scratch;  // bytes of one worker, by kernel
  std::int64_t scratch_bytes = 0;            // of all workers, or of a matmul
  std::int64_t bytes = 0;
  int workers = 1;
  std::unique_ptr<void, decltype(&std::free)> zeros{nullptr, &std::free};

  // The state of one run: everything lives in the caller's workspace or on the stack.
  struct Run {
    const Parts& parts;
    const LaunchArguments& arguments;
    int max_threads;
    std::byte* values;
    std::byte* scratch;
    std::uint64_t* frame;
    std::int32_t error = 0;

    void launch(const PreparedLaunch& launch, const ChunkOrigins& origins);
    void multiply(const PreparedProduct& product, const ChunkOrigins& origins);
    void fill(const PreparedFill& fill, const ChunkOrigins& origins);

   private:
    std::byte* address(const PointerPatch& patch, const ChunkOrigins& origins) const {
      return patched_address(parts.prepared, patch, arguments, values, static_cast<std::byte*>(parts.zeros.get()),
                             origins);
    }
  };
};

namespace {

struct ShareContext {
  KernelEntry entry;
  const PreparedLaunch* launch;
  const std::uint64_t* cells;
  std::byte* scratch;
  std::int64_t scratch_bytes, shares;
};

// One share takes its piece of every part, so that parts of unequal work do not leave a worker idle.
void run_share(const ShareContext& context, std::int64_t share, int worker) {
  std::byte* scratch = context.scratch + worker * context.scratch_bytes;
  std::int64_t start = 0;
  for (const std::int64_t partitions : context.launch->parts) {
    const std::int64_t first = share * partitions / context.shares;
    const std::int64_t last = (share + 1) * partitions / context.shares;
    if (first < last) context.entry(context.cells, start + first, start + last, scratch);
    start += partitions;
  }
}

void fill_from(const PreparedFill& fill, std::size_t dimension, std::byte* target, const std::uint64_t& bits,
               std::size_t size) {
  if (dimension == fill.dimensions.size()) {
    std::memcpy(target, &bits, size);
    return;
  }
  const auto [extent, stride] = fill.dimensions[dimension];
  if (dimension + 1 == fill.dimensions.size() && stride == static_cast<std::int64_t>(size)) {
    const std::size_t bytes = static_cast<std::size_t>(extent) * size;
    if (bits == 0) {
      std::memset(target, 0, bytes);
    } else {
      for (std::size_t at = 0; at < bytes; at += size) std::memcpy(target + at, &bits, size);
    }
    return;
  }
  for (std::int64_t i = 0; i < extent; ++i) fill_from(fill, dimension + 1, target + i * stride, bits, size);
}

}  // namespace

void Bound::Parts::Run::launch(const PreparedLaunch& launch, const ChunkOrigins& origins) {
  std::copy(launch.cells.begin(), launch.cells.end(), frame);
  for (const PointerPatch& patch : launch.pointers)
    frame[patch.cell] = reinterpret_cast<std::uint64_t>(address(patch, origins));
  patch_scalars(launch, arguments.scalars, origins, frame);
  if (launch.error_cell >= 0) frame[launch.error_cell] = reinterpret_cast<std::uint64_t>(&error);
  const int threads = std::max(1, std::min(workers_for(launch.work_ns, max_threads), parts.workers));
  const ShareContext context{parts.program->kernels[launch.kernel].entry, &launch, frame, scratch,
                             parts.kernel_scratch[launch.kernel],         threads};
  const bool streams = parts.program->plan.kernels[launch.kernel].scheduled.streams;
  parallel_partitions(
      threads, threads,
      [](void* opaque, i64 first, i64 last, int worker) {
        const auto& share = *static_cast<const ShareContext*>(opaque);
        for (i64 i = first; i < last; ++i) run_share(share, i, worker);
      },
      const_cast<ShareContext*>(&context), streams ? ShareEnd::store_fence : ShareEnd::nothing);
}

void Bound::Parts::Run::multiply(const PreparedProduct& product, const ChunkOrigins& origins) {
  parts.matmuls[product.matmul]->execute(address(product.a, origins), address(product.b, origins),
                                         address(product.c, origins), scratch, max_threads);
}

void Bound::Parts::Run::fill(const PreparedFill& fill, const ChunkOrigins& origins) {
  const std::uint64_t bits = scalar_bits(fill.dtype, fill.value);
  fill_from(fill, 0, address(fill.target, origins), bits, static_cast<std::size_t>(size_of(fill.dtype)));
}

Bound::Bound(std::shared_ptr<const Program> program, dsl::Extents extents, const std::vector<Strides>& input_strides,
             const std::vector<Strides>& output_strides)
    : parts_(std::make_unique<Parts>()) {
  Parts& parts = *parts_;
  parts.program = std::move(program);
  parts.workers = std::max(1, std::max(worker_limit(), machine().cores));
  parts.prepared = prepare_plan(parts.program->plan, std::move(extents), input_strides, output_strides);
  for (const LoadedKernel& kernel : parts.program->kernels) {
    parts.kernel_scratch.push_back((kernel.scratch_bytes + 63) / 64 * 64);
    parts.scratch_bytes = std::max(parts.scratch_bytes, parts.kernel_scratch.back() * parts.workers);
  }
  for (const MatmulSpec& spec : parts.prepared.matmuls) {
    parts.matmuls.push_back(prepare_matmul(spec));
    parts.scratch_bytes =
        std::max(parts.scratch_bytes, static_cast<std::int64_t>(parts.matmuls.back()->scratch_bytes() + 63) / 64 * 64);
  }
  if (parts.prepared.zero_bytes > 0) {
    parts.zeros.reset(std::calloc(static_cast<std::size_t>(parts.prepared.zero_bytes), 1));
    if (parts.zeros == nullptr) throw std::bad_alloc();
  }
  parts.bytes = parts.prepared.layout.bytes + parts.scratch_bytes + (parts.prepared.most_cells * 8 + 63) / 64 * 64;
}

Bound::~Bound() = default;
std::int64_t Bound::workspace_bytes() const { return parts_->bytes; }
std::int64_t Bound::workspace_value_bytes() const { return parts_->prepared.layout.bytes; }
const dsl::Extents& Bound::extents() const { return parts_->prepared.extents; }
std::int64_t Bound::launches() const { return parts_->prepared.launches; }
std::int64_t Bound::matmuls() const { return parts_->prepared.products; }

bool Bound::try_run(const LaunchArguments& arguments, const BoundOptions& options) const {
  const Parts& parts = *parts_;
  auto* base = static_cast<std::byte*>(arguments.workspace);
  std::byte* scratch = base + parts.prepared.layout.bytes;
  Parts::Run run{parts, arguments, options.max_threads > 0 ? options.max_threads : worker_limit(),
                 base,  scratch,   reinterpret_cast<std::uint64_t*>(scratch + parts.scratch_bytes)};
  ChunkOrigins origins{};
  run_steps(parts.prepared.steps, origins, run);
  count_launches(static_cast<std::uint64_t>(parts.prepared.launches));
  return run.error == 0;
}

void Bound::run(const LaunchArguments& arguments, const BoundOptions& options) const {
  if (try_run(arguments, options)) return;
  throw Error(
      {.kind = ErrorKind::usage,
       .function = parts_->program->plan.name,
       .cure = "Check the index arguments against their axes' extents, or give the lookup a policy: fill or clamp"},
      "an index of a checked lookup is out of range");
}

}  // namespace tigon::runtime
