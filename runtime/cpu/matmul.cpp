// Prepares oneDNN matmul primitives for a layout's pieces and runs them; the only file that includes dnnl.hpp.
#include "runtime/cpu/matmul.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <dnnl.hpp>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/cpu/parallel.hpp"
#include "tigon/error.hpp"

namespace tigon::runtime {
namespace {

using Dims = dnnl::memory::dims;

constexpr std::size_t scratch_alignment = 64;  // bytes, a cache line
constexpr std::size_t most_scratch = std::size_t{2}
                                     << 20;  // bytes a worker, for kernels whose scratch grows with the piece

// Never destroyed: prepared matmuls in static storage may outlive it otherwise.
const dnnl::engine& cpu_engine() {
  static const auto* engine = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *engine;
}

dnnl::memory::data_type library_type(DType dtype) {
  return dtype == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

std::string refuse_dtypes(const MatmulSpec& spec) {
  const bool f32 = spec.a == DType::f32 && spec.b == DType::f32 && spec.c == DType::f32;
  const bool bf16 = spec.a == DType::bf16 && spec.b == DType::bf16 && (spec.c == DType::bf16 || spec.c == DType::f32);
  if (f32 || bf16) return {};
  return fmt::format(
      "the CPU's matmul library multiplies f32 by f32 into f32 and bf16 by bf16 into bf16 or f32, not {} by {} into {}",
      name(spec.a), name(spec.b), name(spec.c));
}

// The sizes of one library call: a piece of the layout's matrix product and of its batch.
struct Shape {
  i64 rows, columns;
  std::vector<i64> batch;
};

struct Descriptors {
  dnnl::memory::desc a, b, c;
};

// dims = batch..., rows, columns; a batch axis that the operand lacks becomes an extent of one, which broadcasts.
dnnl::memory::desc describe_operand(const MatmulLayout& layout, const Shape& shape, i64 MatmulAxis::* stride, i64 rows,
                                    i64 columns, MatrixStrides strides, DType dtype) {
  Dims extents;
  Dims steps;
  const i64 matrix_span = std::max(rows * strides.row, columns * strides.column);
  for (std::size_t i = 0; i < layout.batch.size(); ++i) {
    const i64 step = layout.batch[i].*stride;
    extents.push_back(step == 0 ? 1 : shape.batch[i]);
    steps.push_back(step == 0 ? matrix_span : step);
  }
  extents.insert(extents.end(), {rows, columns});
  steps.insert(steps.end(), {strides.row, strides.column});
  return {extents, library_type(dtype), steps};
}

// One primitive, created for sequential execution so that its blocking does not depend on the number of threads.
struct Kernel {
  Descriptors operands;
  dnnl::memory::desc scratch;
  std::size_t scratch_bytes = 0;
  std::string implementation;
  dnnl::matmul primitive;  // empty when only support was asked for
};

enum class Creation { descriptor, primitive };

// Nothing where the library has only its scalar reference implementation, or no implementation.
std::optional<Kernel> create_kernel(const MatmulSpec& spec, const MatmulLayout& layout, const Shape& shape, bool add,
                                    Creation creation) {
  try {
    const i64 depth = layout.k.extent;
    Kernel kernel;
    kernel.operands = {
        describe_operand(layout, shape, &MatmulAxis::a, shape.rows, depth, layout.a, spec.a),
        describe_operand(layout, shape, &MatmulAxis::b, depth, shape.columns, layout.b, spec.b),
        describe_operand(layout, shape, &MatmulAxis::c, shape.rows, shape.columns, layout.c, spec.c),
    };
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (add) {
      dnnl::post_ops sum;
      sum.append_sum(1.0F);
      attributes.set_post_ops(sum);
    }
    const SequentialOpenMP sequential;
    const dnnl::matmul::primitive_desc descriptor(
        dnnl::matmul::desc(kernel.operands.a, kernel.operands.b, kernel.operands.c), attributes, cpu_engine());
    kernel.implementation = descriptor.impl_info_str();
    if (kernel.implementation.starts_with("ref")) return std::nullopt;
    kernel.scratch = descriptor.scratchpad_desc();
    kernel.scratch_bytes = kernel.scratch.get_size();
    if (creation == Creation::primitive) kernel.primitive = dnnl::matmul(descriptor);
    return kernel;
  } catch (const dnnl::error&) {
    return std::nullopt;
  }
}

Shape whole_shape(const MatmulLayout& layout) {
  Shape shape{layout.m.extent, layout.n.extent, {}};
  for (const MatmulAxis& axis : layout.batch) shape.batch.push_back(axis.extent);
  return shape;
}

// A layout the library takes as a whole: batched if possible, else with the batch as loops around one product.
MatmulLayout find_layout(const MatmulSpec& spec) {
  MatmulLayout layout;
  layout.refusal = refuse_dtypes(spec);
  if (!layout.refusal.empty()) return layout;
  layout = layout_matmul(spec);
  if (!layout.refusal.empty() || layout.empty) return layout;
  if (create_kernel(spec, layout, whole_shape(layout), spec.accumulate, Creation::descriptor)) return layout;
  layout.loops.insert(layout.loops.begin(), layout.batch.begin(), layout.batch.end());
  layout.batch.clear();
  if (create_kernel(spec, layout, whole_shape(layout), spec.accumulate, Creation::descriptor)) return layout;
  layout.refusal = spec.a == DType::bf16 ? "the matmul library has no fast bf16 kernel on this CPU"
                                         : "the matmul library has no fast kernel for these strides";
  return layout;
}

// What one running piece needs of the library's objects; made once and passed from call to call.
struct Slot {
  struct Memories {
    dnnl::memory a, b, c, scratch;
  };
  dnnl::stream stream;
  std::vector<Memories> memories;  // one per kernel
};

i64 byte_offset(const MatmulAxis& axis, i64 MatmulAxis::* stride, i64 index, DType dtype) {
  return axis.*stride * index * size_of(dtype);
}

void fill_zeros(const std::vector<MatmulAxis>& axes, std::size_t depth, std::byte* c, std::size_t size) {
  if (depth == axes.size()) {
    std::memset(c, 0, size);
    return;
  }
  const MatmulAxis& axis = axes[depth];
  if (depth + 1 == axes.size() && axis.c == 1) {
    std::memset(c, 0, size * static_cast<std::size_t>(axis.extent));
    return;
  }
  for (i64 i = 0; i < axis.extent; ++i) fill_zeros(axes, depth + 1, c + axis.c * i * static_cast<i64>(size), size);
}

void require(dnnl_status_t status) {
  if (status == dnnl_success) return;
  throw Error({.kind = ErrorKind::internal, .function = "matmul"},
              fmt::format("the matmul library failed with status {}", static_cast<int>(status)));
}

}  // namespace

namespace {

// Which of a matmul's kernels a piece needs: each cut direction has full pieces and perhaps a shorter last one.
struct Variant {
  bool last_rows = false;
  bool last_columns = false;
  bool last_batch = false;
  bool add = false;

  [[nodiscard]] int code() const {
    return (last_rows ? 1 : 0) + (last_columns ? 2 : 0) + (last_batch ? 4 : 0) + (add ? 8 : 0);
  }
  static Variant of(int code) { return {(code & 1) != 0, (code & 2) != 0, (code & 4) != 0, (code & 8) != 0}; }
};

}  // namespace

struct PreparedMatmul::Parts {
  MatmulSpec spec;
  MatmulLayout layout;
  MatmulPieces pieces;
  i64 row_pieces = 1;
  i64 column_pieces = 1;
  i64 batch_pieces = 1;
  int worker_cap = 1;
  std::size_t worker_scratch = 0;  // bytes
  std::vector<Kernel> kernels;
  // Index into kernels by variant; variants without a shorter last piece share the full one's kernel.
  std::array<int, 16> kernel_index{};

  // Free slots; a call takes one per running worker and gives it back, and makes one if there is none.
  mutable std::array<std::atomic<Slot*>, 64> slots{};

  ~Parts() {
    for (std::atomic<Slot*>& slot : slots) delete slot.load();
  }

  Slot* make_slot() const {
    auto slot = std::make_unique<Slot>();
    slot->stream = dnnl::stream(cpu_engine());
    for (const Kernel& kernel : kernels) {
      slot->memories.push_back({dnnl::memory(kernel.operands.a, cpu_engine(), nullptr),
                                dnnl::memory(kernel.operands.b, cpu_engine(), nullptr),
                                dnnl::memory(kernel.operands.c, cpu_engine(), nullptr),
                                dnnl::memory(kernel.scratch, cpu_engine(), nullptr)});
    }
    return slot.release();
  }

  Slot* take_slot(int worker) const {
    for (std::size_t i = 0; i < slots.size(); ++i) {
      std::atomic<Slot*>& place = slots[(static_cast<std::size_t>(worker) + i) % slots.size()];
      if (place.load(std::memory_order_relaxed) == nullptr) continue;
      if (Slot* slot = place.exchange(nullptr, std::memory_order_acquire)) return slot;
    }
    return make_slot();
  }

  void give_slot(Slot* slot, int worker) const noexcept {
    for (std::size_t i = 0; i < slots.size(); ++i) {
      std::atomic<Slot*>& place = slots[(static_cast<std::size_t>(worker) + i) % slots.size()];
      Slot* empty = nullptr;
      if (place.load(std::memory_order_relaxed) != nullptr) continue;
      if (place.compare_exchange_strong(empty, slot, std::memory_order_release, std::memory_order_relaxed)) return;
    }
    delete slot;
  }

  [[nodiscard]] i64 inner_pieces() const { return row_pieces * column_pieces * batch_pieces; }

  void cut(int cores);
  void create_kernels();
  [[nodiscard]] Shape shape_of(Variant variant) const;
  [[nodiscard]] Kernel create(Variant variant) const;
};

Shape PreparedMatmul::Parts::shape_of(Variant variant) const {
  const auto length = [](i64 extent, i64 piece, i64 count, bool last) {
    return last ? extent - (count - 1) * piece : piece;
  };
  Shape shape = whole_shape(layout);
  shape.rows = length(layout.m.extent, pieces.rows, row_pieces, variant.last_rows);
  shape.columns = length(layout.n.extent, pieces.columns, column_pieces, variant.last_columns);
  if (pieces.batch_axis >= 0) {
    i64& batch = shape.batch[static_cast<std::size_t>(pieces.batch_axis)];
    batch = length(batch, pieces.batch_length, batch_pieces, variant.last_batch);
  }
  return shape;
}

Kernel PreparedMatmul::Parts::create(Variant variant) const {
  const Shape shape = shape_of(variant);
  std::optional<Kernel> kernel = create_kernel(spec, layout, shape, variant.add, Creation::primitive);
  if (kernel) return std::move(*kernel);
  throw Error({.kind = ErrorKind::internal, .function = "matmul"},
              fmt::format("a piece of {} x {} x {} has no fast kernel although the whole has", shape.rows,
                          shape.columns, layout.k.extent));
}

void PreparedMatmul::Parts::cut(int cores) {
  pieces = cut_matmul(layout, cores);
  // The kernels for padded rows keep a bf16 destination's piece in f32 scratch: smaller pieces bound that.
  while (spec.c == DType::bf16 && pieces.rows * pieces.columns > 4096) {
    const std::optional<Kernel> kernel =
        create_kernel(spec, layout, shape_of({}), spec.accumulate, Creation::descriptor);
    if (!kernel || kernel->scratch_bytes <= most_scratch) break;
    i64& longer = pieces.rows > pieces.columns ? pieces.rows : pieces.columns;
    longer = (longer / 2 + 15) / 16 * 16;
  }
  const auto count = [](i64 extent, i64 piece) { return (extent + piece - 1) / piece; };
  row_pieces = count(layout.m.extent, pieces.rows);
  column_pieces = count(layout.n.extent, pieces.columns);
  if (pieces.batch_axis >= 0) {
    batch_pieces = count(layout.batch[static_cast<std::size_t>(pieces.batch_axis)].extent, pieces.batch_length);
  }
  pieces.count = pieces.loop_groups * inner_pieces();
}

void PreparedMatmul::Parts::create_kernels() {
  // The first of several calls into one part of C overwrites unless the whole accumulates; the others add.
  const bool overwrites = !spec.accumulate;
  const bool adds = spec.accumulate || !layout.k_loops.empty();
  const Shape full = shape_of({});
  for (int code = 0; code < 16; ++code) {
    const Variant variant = Variant::of(code);
    if (variant.add ? !adds : !overwrites) continue;
    Variant needed = variant;
    const Shape shape = shape_of(variant);
    if (shape.rows == full.rows) needed.last_rows = false;
    if (shape.columns == full.columns) needed.last_columns = false;
    if (shape.batch == full.batch) needed.last_batch = false;
    if (needed.code() != code) {  // a smaller code, which has its kernel already
      kernel_index[static_cast<std::size_t>(code)] = kernel_index[static_cast<std::size_t>(needed.code())];
      continue;
    }
    kernel_index[static_cast<std::size_t>(code)] = static_cast<int>(kernels.size());
    kernels.push_back(create(variant));
    const std::size_t bytes = kernels.back().scratch_bytes;
    worker_scratch = std::max(worker_scratch, (bytes + scratch_alignment - 1) / scratch_alignment * scratch_alignment);
  }
}

namespace {

struct Call {
  const PreparedMatmul::Parts* parts;
  const std::byte* a;
  const std::byte* b;
  std::byte* c;
  std::byte* scratch;
};

struct Place {
  i64 a = 0, b = 0, c = 0;  // bytes from the operands' starts

  void move(const MatmulAxis& axis, i64 index, const MatmulSpec& spec) {
    a += byte_offset(axis, &MatmulAxis::a, index, spec.a);
    b += byte_offset(axis, &MatmulAxis::b, index, spec.b);
    c += byte_offset(axis, &MatmulAxis::c, index, spec.c);
  }
  // Moves to the flat position `index` of a loop nest, the last axis running fastest.
  void move(const std::vector<MatmulAxis>& axes, i64 index, const MatmulSpec& spec) {
    for (std::size_t i = axes.size(); i-- > 0;) {
      move(axes[i], index % axes[i].extent, spec);
      index /= axes[i].extent;
    }
  }
};

void run_kernel(const Call& call, const Kernel& kernel, const Slot& slot, const Slot::Memories& memories, Place place,
                std::byte* scratch) {
  // The library's interface has no const; it reads A and B only.
  require(dnnl_memory_set_data_handle(memories.a.get(), const_cast<std::byte*>(call.a + place.a)));
  require(dnnl_memory_set_data_handle(memories.b.get(), const_cast<std::byte*>(call.b + place.b)));
  require(dnnl_memory_set_data_handle(memories.c.get(), call.c + place.c));
  if (kernel.scratch_bytes != 0) require(dnnl_memory_set_data_handle(memories.scratch.get(), scratch));
  const std::array<dnnl_exec_arg_t, 4> arguments = {{
      {DNNL_ARG_SRC, memories.a.get()},
      {DNNL_ARG_WEIGHTS, memories.b.get()},
      {DNNL_ARG_DST, memories.c.get()},
      {DNNL_ARG_SCRATCHPAD, memories.scratch.get()},
  }};
  const int count = kernel.scratch_bytes != 0 ? 4 : 3;
  require(dnnl_primitive_execute(kernel.primitive.get(), slot.stream.get(), count, arguments.data()));
}

void run_piece(const Call& call, const Slot& slot, i64 piece, std::byte* scratch) {
  const PreparedMatmul::Parts& parts = *call.parts;
  const MatmulLayout& layout = parts.layout;
  const i64 group = piece / parts.inner_pieces();
  const i64 column = piece % parts.column_pieces;
  const i64 row = piece / parts.column_pieces % parts.row_pieces;
  const i64 batch = piece / (parts.column_pieces * parts.row_pieces) % parts.batch_pieces;
  Place start;
  start.move(layout.m, row * parts.pieces.rows, parts.spec);
  start.move(layout.n, column * parts.pieces.columns, parts.spec);
  if (parts.pieces.batch_axis >= 0) {
    start.move(layout.batch[static_cast<std::size_t>(parts.pieces.batch_axis)], batch * parts.pieces.batch_length,
               parts.spec);
  }
  Variant variant{row == parts.row_pieces - 1, column == parts.column_pieces - 1, batch == parts.batch_pieces - 1,
                  false};
  const i64 loops = product_of_extents(layout.loops);
  const i64 k_loops = product_of_extents(layout.k_loops);
  const i64 first = loops * group / parts.pieces.loop_groups;
  const i64 last = loops * (group + 1) / parts.pieces.loop_groups;
  for (i64 loop = first; loop < last; ++loop) {
    for (i64 k = 0; k < k_loops; ++k) {
      Place place = start;
      place.move(layout.loops, loop, parts.spec);
      place.move(layout.k_loops, k, parts.spec);
      variant.add = parts.spec.accumulate || k > 0;
      const auto index = static_cast<std::size_t>(parts.kernel_index[static_cast<std::size_t>(variant.code())]);
      run_kernel(call, parts.kernels[index], slot, slot.memories[index], place, scratch);
    }
  }
}

void run_share(void* context, i64 first, i64 last, int worker) {
  const Call& call = *static_cast<const Call*>(context);
  const PreparedMatmul::Parts& parts = *call.parts;
  const SequentialOpenMP sequential;
  std::byte* scratch = call.scratch + parts.worker_scratch * static_cast<std::size_t>(worker);
  struct Lease {
    const PreparedMatmul::Parts& parts;
    int worker;
    Slot* slot;
    ~Lease() { parts.give_slot(slot, worker); }
  } const lease{parts, worker, parts.take_slot(worker)};
  for (i64 piece = first; piece < last; ++piece) run_piece(call, *lease.slot, piece, scratch);
}

std::string extents_of(const std::vector<MatmulAxis>& axes) {
  std::string text;
  for (const MatmulAxis& axis : axes) text += fmt::format("{}{}", text.empty() ? "" : "x", axis.extent);
  return text.empty() ? "none" : text;
}

}  // namespace

MatmulSupport supports_matmul(const MatmulSpec& spec) { return {find_layout(spec).refusal}; }

std::shared_ptr<const PreparedMatmul> prepare_matmul(const MatmulSpec& spec, int cores) {
  if (cores <= 0) cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  auto parts = std::make_unique<PreparedMatmul::Parts>();
  parts->spec = spec;
  parts->layout = find_layout(spec);
  const MatmulLayout& layout = parts->layout;
  if (!layout.refusal.empty()) throw Error({.kind = ErrorKind::usage, .function = "matmul"}, layout.refusal);
  if (!layout.empty) {
    if (layout.swapped) std::swap(parts->spec.a, parts->spec.b);
    parts->cut(cores);
    parts->create_kernels();
    parts->worker_cap = static_cast<int>(std::min<i64>(parts->pieces.count, cores));
    for (int worker = 0; worker < parts->worker_cap; ++worker) parts->give_slot(parts->make_slot(), worker);
  }
  return std::shared_ptr<const PreparedMatmul>(new PreparedMatmul(std::move(parts)));
}

PreparedMatmul::PreparedMatmul(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
PreparedMatmul::~PreparedMatmul() = default;

void PreparedMatmul::execute(const void* a, const void* b, void* c, void* scratch, int max_threads) const {
  const Parts& parts = *parts_;
  if (parts.layout.empty) {
    const bool nothing = std::any_of(parts.layout.c_axes.begin(), parts.layout.c_axes.end(),
                                     [](const MatmulAxis& axis) { return axis.extent == 0; });
    if (nothing || parts.spec.accumulate) return;
    fill_zeros(parts.layout.c_axes, 0, static_cast<std::byte*>(c), static_cast<std::size_t>(size_of(parts.spec.c)));
    return;
  }
  if (scratch == nullptr && parts.worker_scratch != 0) {
    throw Error({.kind = ErrorKind::internal, .function = "matmul"}, "the scratch memory is missing");
  }
  Call call{&parts, static_cast<const std::byte*>(a), static_cast<const std::byte*>(b), static_cast<std::byte*>(c),
            static_cast<std::byte*>(scratch)};
  if (parts.layout.swapped) std::swap(call.a, call.b);
  const int limit = max_threads > 0 ? max_threads : worker_limit();
  parallel_partitions(parts.pieces.count, std::min(limit, parts.worker_cap), run_share, &call);
}

std::size_t PreparedMatmul::scratch_bytes() const noexcept {
  return parts_->worker_scratch * static_cast<std::size_t>(parts_->worker_cap);
}

i64 PreparedMatmul::partitions() const noexcept { return parts_->layout.empty ? 0 : parts_->pieces.count; }

double PreparedMatmul::work_nanoseconds() const noexcept { return estimated_nanoseconds(parts_->layout); }

std::string PreparedMatmul::description() const {
  const MatmulLayout& layout = parts_->layout;
  if (layout.empty) return parts_->spec.accumulate ? "nothing to add" : "zeros";
  return fmt::format("{} {}x{}x{}{}, batch {}, loops {}, summed loops {}, {} pieces",
                     parts_->kernels.front().implementation, layout.m.extent, layout.n.extent, layout.k.extent,
                     layout.swapped ? " transposed" : "", extents_of(layout.batch), extents_of(layout.loops),
                     extents_of(layout.k_loops), parts_->pieces.count);
}

}  // namespace tigon::runtime
