// Descriptors for cuBLASLt, whose matrices lie by columns: C by rows is its transpose, so B comes first and then A.
#include "runtime/cuda/matmul.hpp"

#include <array>
#include <mutex>

#include "runtime/cuda/blas_api.hpp"
#include "runtime/cuda/fill.hpp"
#include "tigon/error.hpp"

namespace tigon::runtime {
namespace {

constexpr std::size_t most_workspace = std::size_t{32} << 20;
constexpr std::uint32_t vector_alignment = 16;

std::string bind(const Library& library, blas_c::Api& api) {
  const SymbolSlot slots[] = {
#define TIGON_BLAS_SLOT(field, name, ...) {#name, true, reinterpret_cast<void**>(&api.field)},
      TIGON_BLAS_API(TIGON_BLAS_SLOT)
#undef TIGON_BLAS_SLOT
  };
  return bind_symbols(library, slots);
}

std::string judge(const Library& library, LibrarySearch& search) {
  blas_c::Api api;
  const std::string missing = bind(library, api);
  if (!missing.empty()) {
    search.missing_symbol = missing;
    return fmt::format("lacks {}", missing);
  }
  search.version = fmt::format("{}", api.version());
  return {};
}

LibraryRequest blas_request() {
  LibraryRequest request{.name = "cuBLASLt", .environment = "TIGON_CUBLASLT"};
  for (const int major : {13, 12, 11}) request.sonames.push_back(fmt::format("libcublasLt.so.{}", major));
  for (const char* root : {"$CUDA_HOME", "$CUDA_PATH", "/usr/local/cuda", "/usr/local/cuda-*", "/opt/cuda"}) {
    for (const char* inside : {"lib64", "lib", "targets/*/lib"})
      request.folders.push_back(fmt::format("{}/{}", root, inside));
  }
  for (const std::string& folder : python_package_folders("nvidia/*/lib")) request.folders.push_back(folder);
  for (const std::string& folder : usual_folders()) request.folders.push_back(folder);
  request.files = {"libcublasLt.so.[0-9]*"};
  request.prefer_loaded = true;
  request.newest_first = true;
  request.cure =
      "Install the CUDA toolkit's cuBLAS, or pip's nvidia-cublas package, or set TIGON_CUBLASLT to a libcublasLt file, "
      "a folder or a version";
  request.accept = judge;
  return request;
}

struct Blas {
  Library library;
  blas_c::Api api;
};

const Blas& blas() {
  static const Blas& found = *[] {
    auto* made = new Blas();
    const Library& driver = CudaDriver::get().library();
    if (bind(driver, made->api).empty()) {
      made->library = driver;
      return made;
    }
    LibrarySearch search;
    made->library = find_library(blas_request(), search);
    if (!made->library) throw search.error();
    bind(made->library, made->api);
    return made;
  }();
  return found;
}

void check(blas_c::Status status, const char* call) {
  if (status == blas_c::success) return;
  throw Error({.kind = ErrorKind::device, .function = call, .found = blas().api.status_text(status)},
              fmt::format("cuBLASLt {} refused a call", blas().api.version()));
}

// One handle per device; the library lets any number of threads use it.
blas_c::Handle handle_of(const CudaDevice& device) {
  static std::mutex mutex;
  static std::array<blas_c::Handle, 64> handles{};
  const std::lock_guard lock(mutex);
  blas_c::Handle& handle = handles.at(static_cast<std::size_t>(device.ordinal));
  if (handle == nullptr) check(blas().api.create(&handle), "cublasLtCreate");
  return handle;
}

int type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return blas_c::real_f32;
    case DType::f64:
      return blas_c::real_f64;
    case DType::f16:
      return blas_c::real_f16;
    case DType::bf16:
      return blas_c::real_bf16;
    default:
      throw Error({.kind = ErrorKind::internal, .found = std::string(name(dtype))},
                  "a matmul was planned in a type that the library has not");
  }
}

// A matrix as the library sees it, by columns.
struct Columns {
  i64 rows, columns, leading;
  bool transposed;  // relative to what the product needs
};

// `rows` x `columns` with these strides, seen as its transpose by columns.
Columns flipped(i64 rows, i64 columns, const MatrixStrides& strides) {
  if (strides.column == 1) return {columns, rows, std::max(strides.row, columns), false};
  return {rows, columns, std::max(strides.column, rows), true};
}

}  // namespace

struct CudaMatmul::Parts {
  MatmulLayout layout;
  MatmulSpec spec;
  blas_c::Handle handle = nullptr;
  blas_c::Operation operation = nullptr;
  blas_c::Layout a = nullptr, b = nullptr, c = nullptr;
  std::array<blas_c::Choice, 2> choices{};  // for operands at multiples of 16 bytes, and for any
  std::size_t workspace = 0;
  PreparedFill zeros;             // where a summed axis is empty
  std::vector<MatmulAxis> calls;  // axes with one call for each index; those of k last

  ~Parts() {
    const blas_c::Api& api = blas().api;
    if (operation != nullptr) api.operation_destroy(operation);
    for (const blas_c::Layout one : {a, b, c}) {
      if (one != nullptr) api.layout_destroy(one);
    }
  }

  blas_c::Layout layout_of(DType dtype, const Columns& matrix, i64 batches, i64 batch_stride) const {
    const blas_c::Api& api = blas().api;
    blas_c::Layout made = nullptr;
    check(api.layout_create(&made, type_of(dtype), static_cast<std::uint64_t>(matrix.rows),
                            static_cast<std::uint64_t>(matrix.columns), matrix.leading),
          "cublasLtMatrixLayoutCreate");
    const auto count = static_cast<std::int32_t>(batches);
    check(api.layout_set(made, blas_c::layout_batches, &count, sizeof count), "cublasLtMatrixLayoutSetAttribute");
    check(api.layout_set(made, blas_c::layout_batch_stride, &batch_stride, sizeof batch_stride),
          "cublasLtMatrixLayoutSetAttribute");
    return made;
  }

  blas_c::Choice choose(std::uint32_t alignment) const {
    const blas_c::Api& api = blas().api;
    blas_c::Preference preference = nullptr;
    check(api.preference_create(&preference), "cublasLtMatmulPreferenceCreate");
    const auto set = [&](int attribute, const auto& value) {
      check(api.preference_set(preference, attribute, &value, sizeof value), "cublasLtMatmulPreferenceSetAttribute");
    };
    set(blas_c::preference_workspace, most_workspace);
    set(blas_c::preference_reductions, blas_c::reduction_in_compute_type);
    for (int operand = 0; operand < 4; ++operand) set(blas_c::preference_alignment_a + operand, alignment);
    blas_c::Choice choice;
    int found = 0;
    const blas_c::Status status = api.heuristic(handle, operation, b, a, c, c, preference, 1, &choice, &found);
    api.preference_destroy(preference);
    check(status, "cublasLtMatmulAlgoGetHeuristic");
    if (found == 0) {
      throw Error({.kind = ErrorKind::device,
                   .found = fmt::format("{} x {} x {} of {} and {} into {}", layout.m.extent, layout.n.extent,
                                        layout.k.extent, name(spec.a), name(spec.b), name(spec.c))},
                  fmt::format("cuBLASLt {} has no algorithm for a matmul", api.version()));
    }
    return choice;
  }

  // One call for each index of the axes from `level` on.
  void run(std::size_t level, cuda_c::Pointer at_a, cuda_c::Pointer at_b, cuda_c::Pointer at_c, bool adds, void* memory,
           cuda_c::Stream stream) const {
    if (level < calls.size()) {
      const MatmulAxis& axis = calls[level];
      for (i64 i = 0; i < axis.extent; ++i) {
        run(level + 1, at_a + static_cast<cuda_c::Pointer>(i * axis.a * size_of(spec.a)),
            at_b + static_cast<cuda_c::Pointer>(i * axis.b * size_of(spec.b)),
            at_c + static_cast<cuda_c::Pointer>(i * axis.c * size_of(spec.c)),
            adds || (axis.role == MatmulClass::k && i > 0), memory, stream);
      }
      return;
    }
    const bool aligned = ((at_a | at_b | at_c) % vector_alignment) == 0;
    const double wide[2] = {1, adds ? 1.0 : 0.0};
    const float narrow[2] = {1, adds ? 1.0f : 0.0f};
    const bool doubles = spec.c == DType::f64;
    const void* alpha = doubles ? static_cast<const void*>(&wide[0]) : &narrow[0];
    const void* beta = doubles ? static_cast<const void*>(&wide[1]) : &narrow[1];
    check(blas().api.matmul(handle, operation, alpha, reinterpret_cast<const void*>(at_b), b,
                            reinterpret_cast<const void*>(at_a), a, beta, reinterpret_cast<const void*>(at_c), c,
                            reinterpret_cast<void*>(at_c), c, &choices[aligned ? 0 : 1].algorithm, memory, workspace,
                            stream),
          "cublasLtMatmul");
  }
};

CudaMatmul::CudaMatmul(const MatmulSpec& spec, const CudaDevice& device) : parts_(std::make_unique<Parts>()) {
  Parts& parts = *parts_;
  parts.spec = spec;
  parts.layout = layout_matmul(spec);
  MatmulLayout& layout = parts.layout;
  if (!layout.refusal.empty()) throw Error({.kind = ErrorKind::usage}, "a matmul cannot be done: " + layout.refusal);
  if (layout.swapped) std::swap(parts.spec.a, parts.spec.b);
  const CurrentContext context(device);
  parts.handle = handle_of(device);
  if (layout.empty) {
    parts.zeros.dtype = spec.c;
    for (const MatmulAxis& axis : layout.c_axes)
      parts.zeros.dimensions.push_back({axis.extent, axis.c * size_of(spec.c)});
    return;
  }
  // The longest batch axis goes into the call; each index of the others is a call of its own.
  MatmulAxis batch{MatmulClass::batch, 1, 0, 0, 0};
  parts.calls = layout.loops;
  for (const MatmulAxis& axis : layout.batch) {
    if (axis.extent <= batch.extent) {
      parts.calls.push_back(axis);
      continue;
    }
    if (batch.extent > 1) parts.calls.push_back(batch);
    batch = axis;
  }
  for (MatmulAxis axis : layout.k_loops) {
    axis.role = MatmulClass::k;
    parts.calls.push_back(axis);
  }
  const Columns a = flipped(layout.m.extent, layout.k.extent, layout.a);
  const Columns b = flipped(layout.k.extent, layout.n.extent, layout.b);
  const Columns c = flipped(layout.m.extent, layout.n.extent, layout.c);
  const bool doubles = parts.spec.c == DType::f64;
  const blas_c::Api& api = blas().api;
  check(api.operation_create(&parts.operation, doubles ? blas_c::compute_f64 : blas_c::compute_f32,
                             doubles ? blas_c::real_f64 : blas_c::real_f32),
        "cublasLtMatmulDescCreate");
  const std::int32_t first = b.transposed ? 1 : 0, second = a.transposed ? 1 : 0;
  check(api.operation_set(parts.operation, blas_c::operation_transpose_a, &first, sizeof first),
        "cublasLtMatmulDescSetAttribute");
  check(api.operation_set(parts.operation, blas_c::operation_transpose_b, &second, sizeof second),
        "cublasLtMatmulDescSetAttribute");
  parts.a = parts.layout_of(parts.spec.a, a, batch.extent, batch.a);
  parts.b = parts.layout_of(parts.spec.b, b, batch.extent, batch.b);
  parts.c = parts.layout_of(parts.spec.c, c, batch.extent, batch.c);
  parts.choices[0] = parts.choose(vector_alignment);
  parts.choices[1] = parts.choose(static_cast<std::uint32_t>(size_of(parts.spec.c)));
  for (const blas_c::Choice& choice : parts.choices) parts.workspace = std::max(parts.workspace, choice.workspace);
}

CudaMatmul::~CudaMatmul() = default;
std::size_t CudaMatmul::workspace_bytes() const { return parts_->workspace; }

void CudaMatmul::execute(cuda_c::Pointer a, cuda_c::Pointer b, cuda_c::Pointer c, void* workspace,
                         cuda_c::Stream stream) const {
  const Parts& parts = *parts_;
  if (parts.layout.swapped) std::swap(a, b);
  if (parts.layout.empty) {
    if (!parts.spec.accumulate) fill_memory(parts.zeros, c, stream);
    return;
  }
  parts.run(0, a, b, c, parts.spec.accumulate, workspace, stream);
}

bool has_cublas() {
  static const bool found = search_cublas().found();
  return found;
}

LibrarySearch search_cublas() {
  LibrarySearch search;
  if (const Library& driver = CudaDriver::get().library(); judge(driver, search).empty()) {
    search.name = "cuBLASLt";
    search.path = driver.path();
    return search;
  }
  search = {};
  find_library(blas_request(), search);
  return search;
}

}  // namespace tigon::runtime
