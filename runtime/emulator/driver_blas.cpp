// The cuBLASLt functions that a plain matrix product needs, over the emulated device's checked memory.
//
// D = alpha * op(A) * op(B) + beta * C in strided batches. Sums are formed in f32 (f64 for f64) in the order of k, so
// their bits differ from any version of the real library; TF32 rounds its operands if it is asked for.
#include <algorithm>
#include <cstring>

#include "runtime/emulator/driver.hpp"
#include "runtime/emulator/half.hpp"

namespace tigon::emulator::driver {

namespace {

enum Status : int {
  blas_success = 0,
  blas_invalid_value = 7,
  blas_execution_failed = 13,
  blas_not_supported = 15,
};
constexpr int real_f32 = 0;
constexpr int real_f64 = 1;
constexpr int real_f16 = 2;
constexpr int real_bf16 = 14;
constexpr int compute_f32 = 68;
constexpr int compute_tf32 = 77;
constexpr int compute_f64 = 70;

struct Handle {};

struct Operation {
  int compute = compute_f32;
  int scale = real_f32;
  int pointer_mode = 0;
  int transpose_a = 0;
  int transpose_b = 0;
  std::int32_t epilogue = 1;
};

struct Layout {
  int type = real_f32;
  std::int32_t order = 0;  // 0 by columns, 1 by rows
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;
  std::int64_t leading = 0;
  std::int32_t batches = 1;
  std::int64_t batch_stride = 0;
};

struct Preference {
  std::uint64_t workspace = 0;
};

struct Algorithm {
  std::uint64_t data[8];
};

struct Choice {
  Algorithm algorithm;
  std::size_t workspace;
  Status state;
  float waves;
  int reserved[4];
};

std::size_t bytes_of(int type) {
  return type == real_f64 ? 8 : (type == real_f32 ? 4 : (type == real_f16 || type == real_bf16 ? 2 : 0));
}

Status fail(const std::string& sentence, Status status = blas_invalid_value) {
  auto& driver = Driver::instance();
  const std::lock_guard lock(driver.mutex);
  driver.fail(unknown, sentence);
  return status;
}

Status create(Handle** handle) {
  if (handle == nullptr) return blas_invalid_value;
  *handle = new Handle;
  return blas_success;
}
Status destroy(Handle* handle) {
  delete handle;
  return blas_success;
}
std::size_t version() { return 130000; }

const char* status_name(Status status) {
  switch (status) {
    case blas_success:
      return "CUBLAS_STATUS_SUCCESS";
    case blas_invalid_value:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case blas_execution_failed:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case blas_not_supported:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
  return "CUBLAS_STATUS_UNKNOWN";
}
const char* status_text(Status status) {
  static thread_local std::string text;
  auto& driver = Driver::instance();
  const std::lock_guard lock(driver.mutex);
  text =
      status == blas_success ? "success" : fmt::format("{} (emulated device: {})", status_name(status), driver.error);
  return text.c_str();
}

Status create_operation(Operation** operation, int compute, int scale) {
  if (operation == nullptr) return blas_invalid_value;
  *operation = new Operation{compute, scale};
  return blas_success;
}
Status destroy_operation(Operation* operation) {
  delete operation;
  return blas_success;
}

template <class T>
Status assign(T& to, const void* from, std::size_t bytes) {
  if (bytes != sizeof(T)) return fail(fmt::format("an attribute of {} bytes was given as {}", sizeof(T), bytes));
  std::memcpy(&to, from, bytes);
  return blas_success;
}

Status set_operation(Operation* operation, int attribute, const void* value, std::size_t bytes) {
  switch (attribute) {
    case 0:
      return assign(operation->compute, value, bytes);
    case 1:
      return assign(operation->scale, value, bytes);
    case 2:
      return assign(operation->pointer_mode, value, bytes);
    case 3:
      return assign(operation->transpose_a, value, bytes);
    case 4:
      return assign(operation->transpose_b, value, bytes);
    case 7:
      return assign(operation->epilogue, value, bytes);
    case 15:  // how many multiprocessors may be used
    case 25:  // fast accumulation of 8-bit floats
      return blas_success;
    default:
      return fail(fmt::format("attribute {} of a matmul is not emulated", attribute), blas_not_supported);
  }
}

Status create_layout(Layout** layout, int type, std::uint64_t rows, std::uint64_t columns, std::int64_t leading) {
  if (layout == nullptr) return blas_invalid_value;
  if (bytes_of(type) == 0) return fail(fmt::format("the data type {} is not emulated", type), blas_not_supported);
  *layout = new Layout{type, 0, rows, columns, leading, 1, 0};
  return blas_success;
}
Status destroy_layout(Layout* layout) {
  delete layout;
  return blas_success;
}
Status set_layout(Layout* layout, int attribute, const void* value, std::size_t bytes) {
  switch (attribute) {
    case 0:
      return assign(layout->type, value, bytes);
    case 1:
      return assign(layout->order, value, bytes);
    case 2:
      return assign(layout->rows, value, bytes);
    case 3:
      return assign(layout->columns, value, bytes);
    case 4:
      return assign(layout->leading, value, bytes);
    case 5:
      return assign(layout->batches, value, bytes);
    case 6:
      return assign(layout->batch_stride, value, bytes);
    default:
      return fail(fmt::format("attribute {} of a layout is not emulated", attribute), blas_not_supported);
  }
}

Status create_preference(Preference** preference) {
  if (preference == nullptr) return blas_invalid_value;
  *preference = new Preference;
  return blas_success;
}
Status destroy_preference(Preference* preference) {
  delete preference;
  return blas_success;
}
// The ways to search and to split sums do not exist here; only the limit of the workspace is kept.
Status set_preference(Preference* preference, int attribute, const void* value, std::size_t bytes) {
  return attribute == 1 ? assign(preference->workspace, value, bytes) : blas_success;
}

struct Problem {
  Operation operation;
  Layout a, b, c, d;
  std::uint64_t m = 0;
  std::uint64_t n = 0;
  std::uint64_t k = 0;
};

Status check(const Operation& operation, const Layout& a, const Layout& b, const Layout& c, const Layout& d,
             Problem& problem) {
  problem = {operation, a, b, c, d, d.rows, d.columns, operation.transpose_a != 0 ? a.rows : a.columns};
  const auto a_rows = operation.transpose_a != 0 ? a.columns : a.rows;
  const auto b_rows = operation.transpose_b != 0 ? b.columns : b.rows;
  const auto b_columns = operation.transpose_b != 0 ? b.rows : b.columns;
  if (a_rows != problem.m || b_rows != problem.k || b_columns != problem.n || c.rows != d.rows ||
      c.columns != d.columns) {
    return fail(fmt::format("op(A) is {} x {}, op(B) {} x {}, C {} x {}, D {} x {}", a_rows, problem.k, b_rows,
                            b_columns, c.rows, c.columns, d.rows, d.columns));
  }
  for (const auto* layout : {&a, &b, &c, &d}) {
    if (layout->order != 0 && layout->order != 1) return fail("only rows and columns are emulated", blas_not_supported);
    const auto inner = layout->order == 0 ? layout->rows : layout->columns;
    if (layout->leading < static_cast<std::int64_t>(inner)) {
      return fail(fmt::format("the leading dimension {} is less than {}", layout->leading, inner));
    }
    if (layout->batches != d.batches) return fail("the batches of the operands differ");
  }
  if (operation.epilogue != 1) return fail("epilogues are not emulated", blas_not_supported);
  const bool doubles = d.type == real_f64;
  if (operation.compute != (doubles ? compute_f64 : compute_f32) && !(operation.compute == compute_tf32 && !doubles)) {
    return fail(fmt::format("the compute type {} is not emulated", operation.compute), blas_not_supported);
  }
  if (operation.scale != (doubles ? real_f64 : real_f32)) return fail("alpha and beta have the type of the sums");
  if (a.type != b.type || c.type != d.type || (doubles && a.type != real_f64) ||
      (a.type != d.type && d.type != real_f32)) {
    return fail("this combination of types is not emulated", blas_not_supported);
  }
  if (operation.pointer_mode != 0 && operation.pointer_mode != 1)
    return fail("this pointer mode is not emulated", blas_not_supported);
  return blas_success;
}

Status heuristic(Handle*, const Operation* operation, const Layout* a, const Layout* b, const Layout* c,
                 const Layout* d, const Preference*, int wanted, Choice* choices, int* found) {
  *found = 0;
  Problem problem;
  if (wanted < 1) return blas_invalid_value;
  const auto status = check(*operation, *a, *b, *c, *d, problem);
  if (status != blas_success) return status;
  choices[0] = {};
  choices[0].waves = 1;
  choices[0].state = blas_success;
  *found = 1;
  return blas_success;
}

double read(const std::uint8_t* bytes, int type) {
  if (type == real_f64) {
    double value = 0;
    std::memcpy(&value, bytes, 8);
    return value;
  }
  if (type == real_f32) {
    float value = 0;
    std::memcpy(&value, bytes, 4);
    return value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, bytes, 2);
  return type == real_bf16 ? bf16_to_float(bits) : half_to_float(bits);
}

void write(std::uint8_t* bytes, int type, double value) {
  if (type == real_f64) {
    std::memcpy(bytes, &value, 8);
  } else if (type == real_f32) {
    const auto narrow = static_cast<float>(value);
    std::memcpy(bytes, &narrow, 4);
  } else {
    const auto narrow = static_cast<float>(value);
    const auto bits = type == real_bf16 ? float_to_bf16(narrow) : float_to_half(narrow);
    std::memcpy(bytes, &bits, 2);
  }
}

// One matrix of one batch in device memory; every use of it is checked by runs of neighbours.
class Matrix {
 public:
  Matrix(Driver& driver, const Layout& layout, std::uint64_t address, const char* name)
      : driver_(driver), layout_(layout), address_(address), name_(name) {}

  // Reports and returns false if any element is outside an allocation, or not initialized where that is wanted.
  bool check(bool reads, bool writes, int batch) {
    const auto size = bytes_of(layout_.type);
    const auto outer = layout_.order == 0 ? layout_.columns : layout_.rows;
    const auto inner = (layout_.order == 0 ? layout_.rows : layout_.columns) * size;
    base_ = address_ + static_cast<std::uint64_t>(layout_.batch_stride * batch) * size;
    if (outer == 0 || inner == 0) return true;
    const auto extent = (outer - 1) * static_cast<std::uint64_t>(layout_.leading) * size + inner;
    auto* buffer = driver_.machine->memory.find(base_, extent);
    if (buffer == nullptr) return report(Fault::out_of_bounds, fmt::format("{} bytes at {:#x}", extent, base_));
    if (base_ % size != 0) return report(Fault::misaligned, fmt::format("address {:#x}", base_));
    if (writes && buffer->read_only) return report(Fault::read_only, buffer->name);
    bytes_ = buffer->data + (base_ - buffer->address);
    auto* state = buffer->state.data() + (base_ - buffer->address);
    for (std::uint64_t i = 0; i < outer; ++i, state += static_cast<std::uint64_t>(layout_.leading) * size) {
      for (std::uint64_t j = 0; j < inner; ++j) {
        if ((state[j] & state_forbidden) != 0) return report(Fault::forbidden, buffer->name);
        if (reads && (state[j] & state_initialized) == 0) {
          return report(Fault::uninitialized, fmt::format("row or column {} of {}", i, buffer->name));
        }
        if (writes) state[j] |= state_initialized;
      }
    }
    return true;
  }
  [[nodiscard]] std::uint8_t* at(std::uint64_t row, std::uint64_t column) const {
    const auto index = layout_.order == 0 ? row + column * static_cast<std::uint64_t>(layout_.leading)
                                          : column + row * static_cast<std::uint64_t>(layout_.leading);
    return bytes_ + index * bytes_of(layout_.type);
  }

 private:
  bool report(Fault fault, const std::string& detail) {
    if (auto* made = driver_.machine->reports.add(fault, this_kind(), static_cast<std::uint32_t>(name_[0]))) {
      made->kernel = "cublasLtMatmul";
      made->instruction = fmt::format("operand {}", name_);
      made->detail = detail;
    }
    return false;
  }
  static const void* this_kind() {
    static const char kind = 0;
    return &kind;
  }

  Driver& driver_;
  Layout layout_;
  std::uint64_t address_;
  const char* name_;
  std::uint64_t base_ = 0;
  std::uint8_t* bytes_ = nullptr;
};

template <class Sum>
void multiply(const Problem& problem, const Matrix& a, const Matrix& b, const Matrix& c, const Matrix& d, double alpha,
              double beta) {
  const auto& [operation, a_layout, b_layout, c_layout, d_layout, m, n, k] = problem;
  const bool cut = operation.compute == compute_tf32 && a_layout.type == real_f32;
  const auto operand = [&](double value) {
    if (!cut) return static_cast<Sum>(value);
    return static_cast<Sum>(std::bit_cast<float>(round_to_format(value, format_tf32, Rounding::away) << 13));
  };
  std::vector<Sum> right(k * n);
  for (std::uint64_t i = 0; i < k; ++i) {
    for (std::uint64_t j = 0; j < n; ++j) {
      right[i * n + j] = operand(read(operation.transpose_b != 0 ? b.at(j, i) : b.at(i, j), b_layout.type));
    }
  }
  std::vector<Sum> sums(n);
  for (std::uint64_t row = 0; row < m; ++row) {
    std::fill(sums.begin(), sums.end(), Sum{0});
    for (std::uint64_t i = 0; i < k; ++i) {
      const auto left = operand(read(operation.transpose_a != 0 ? a.at(i, row) : a.at(row, i), a_layout.type));
      const auto* from = right.data() + i * n;
      for (std::uint64_t j = 0; j < n; ++j) sums[j] += left * from[j];
    }
    for (std::uint64_t j = 0; j < n; ++j) {
      Sum value = static_cast<Sum>(alpha) * sums[j];
      if (beta != 0) value += static_cast<Sum>(beta) * static_cast<Sum>(read(c.at(row, j), c_layout.type));
      write(d.at(row, j), d_layout.type, value);
    }
  }
}

void run(Driver& driver, const Problem& problem, const void* alpha, const void* beta, std::uint64_t a, std::uint64_t b,
         std::uint64_t c, std::uint64_t d, double alpha_value, double beta_value) {
  if (driver.status() != success) return;
  if (problem.operation.pointer_mode == 1) {
    const auto size = bytes_of(problem.operation.scale);
    const auto load = [&](const void* pointer, double& value) {
      const auto address = reinterpret_cast<std::uint64_t>(pointer);
      const auto* buffer = driver.machine->memory.find(address, size);
      if (buffer != nullptr) value = read(buffer->data + (address - buffer->address), problem.operation.scale);
    };
    load(alpha, alpha_value);
    load(beta, beta_value);
  }
  bool good = true;
  for (int batch = 0; batch < problem.d.batches && good; ++batch) {
    Matrix left(driver, problem.a, a, "A");
    Matrix right(driver, problem.b, b, "B");
    Matrix addend(driver, problem.c, c, "C");
    Matrix result(driver, problem.d, d, "D");
    // Without a factor the operands are not read, and C is not when beta is zero.
    const bool empty = problem.k == 0;
    good = (empty || left.check(true, false, batch)) && (empty || right.check(true, false, batch)) &&
           (beta_value == 0 || addend.check(true, false, batch)) && result.check(false, true, batch);
    if (!good || problem.m == 0 || problem.n == 0) break;
    if (problem.d.type == real_f64) {
      multiply<double>(problem, left, right, addend, result, alpha_value, beta_value);
    } else {
      multiply<float>(problem, left, right, addend, result, alpha_value, beta_value);
    }
  }
  if (good || !driver.options.faults_are_errors) return;
  driver.pending = illegal_address;
  driver.error = driver.machine->reports.all().back().text();
}

Status matmul(Handle*, const Operation* operation, const void* alpha, const void* a, const Layout* a_layout,
              const void* b, const Layout* b_layout, const void* beta, const void* c, const Layout* c_layout, void* d,
              const Layout* d_layout, const Algorithm*, void*, std::size_t, Stream* stream) {
  Problem problem;
  const auto status = check(*operation, *a_layout, *b_layout, *c_layout, *d_layout, problem);
  if (status != blas_success) return status;
  double alpha_value = 0;
  double beta_value = 0;
  if (operation->pointer_mode == 0) {
    alpha_value = read(static_cast<const std::uint8_t*>(alpha), operation->scale);
    beta_value = read(static_cast<const std::uint8_t*>(beta), operation->scale);
  }
  const auto result = guarded([&](Driver& driver) {
    return driver.enqueue(stream, [=, &driver] {
      run(driver, problem, alpha, beta, reinterpret_cast<std::uint64_t>(a), reinterpret_cast<std::uint64_t>(b),
          reinterpret_cast<std::uint64_t>(c), reinterpret_cast<std::uint64_t>(d), alpha_value, beta_value);
    });
  });
  return result == success ? blas_success : blas_execution_failed;
}

}  // namespace

std::vector<EntryPoint> blas_entry_points() {
  return {
      {"cublasLtCreate", address_of(create)},
      {"cublasLtDestroy", address_of(destroy)},
      {"cublasLtGetVersion", address_of(version)},
      {"cublasLtGetStatusName", address_of(status_name)},
      {"cublasLtGetStatusString", address_of(status_text)},
      {"cublasLtMatmulDescCreate", address_of(create_operation)},
      {"cublasLtMatmulDescDestroy", address_of(destroy_operation)},
      {"cublasLtMatmulDescSetAttribute", address_of(set_operation)},
      {"cublasLtMatrixLayoutCreate", address_of(create_layout)},
      {"cublasLtMatrixLayoutDestroy", address_of(destroy_layout)},
      {"cublasLtMatrixLayoutSetAttribute", address_of(set_layout)},
      {"cublasLtMatmulPreferenceCreate", address_of(create_preference)},
      {"cublasLtMatmulPreferenceDestroy", address_of(destroy_preference)},
      {"cublasLtMatmulPreferenceSetAttribute", address_of(set_preference)},
      {"cublasLtMatmulAlgoGetHeuristic", address_of(heuristic)},
      {"cublasLtMatmul", address_of(matmul)},
  };
}

}  // namespace tigon::emulator::driver
