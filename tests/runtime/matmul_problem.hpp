// Operands, a plain double-precision answer with its error bound, and execution, shared by the matmul tests.
#pragma once
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <random>

#include "runtime/cpu/matmul.hpp"

namespace tigon::runtime::test {

inline void set_openmp_threads(int threads) {
  static const auto set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  REQUIRE(set != nullptr);
  set(threads);
}

// OpenMP's thread limit for the life of this object.
class OpenMPThreads {
 public:
  explicit OpenMPThreads(int threads) : previous_(limit()) { set_openmp_threads(threads); }
  ~OpenMPThreads() { set_openmp_threads(previous_); }

 private:
  static int limit() { return reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"))(); }
  int previous_;
};

// A tensor of one dtype in plain bytes.
struct Operand {
  DType dtype = DType::f32;
  std::vector<std::byte> bytes{};

  Operand() = default;
  Operand(DType type, i64 count) : dtype(type), bytes(static_cast<std::size_t>(count * size_of(type))) {}
  [[nodiscard]] i64 count() const { return static_cast<i64>(bytes.size()) / size_of(dtype); }
  [[nodiscard]] double get(i64 index) const {
    if (dtype == DType::bf16) return to_f32(reinterpret_cast<const bf16*>(bytes.data())[index]);
    return reinterpret_cast<const float*>(bytes.data())[index];
  }
  void set(i64 index, float value) {
    if (dtype == DType::bf16) {
      reinterpret_cast<bf16*>(bytes.data())[index] = to_bf16(value);
    } else {
      reinterpret_cast<float*>(bytes.data())[index] = value;
    }
  }
  void randomize(std::mt19937& random) {
    std::uniform_real_distribution<float> distribution(-1.0F, 1.0F);
    for (i64 i = 0; i < count(); ++i) set(i, distribution(random));
  }
};

inline i64 elements(const MatmulSpec& spec, i64 MatmulAxis::* stride) {
  i64 last = 0;
  for (const MatmulAxis& axis : spec.axes) last += axis.*stride * std::max<i64>(0, axis.extent - 1);
  return last + 1;
}

struct Problem {
  MatmulSpec spec;
  Operand a, b, c;

  Problem(MatmulSpec specification, std::mt19937& random)
      : spec(std::move(specification)),
        a(spec.a, elements(spec, &MatmulAxis::a)),
        b(spec.b, elements(spec, &MatmulAxis::b)),
        c(spec.c, elements(spec, &MatmulAxis::c)) {
    a.randomize(random);
    b.randomize(random);
    c.randomize(random);
  }
};

// C after a call on a copy of the problem's C.
inline Operand run(const PreparedMatmul& matmul, const Problem& problem, int max_threads = 0) {
  Operand c = problem.c;
  const std::size_t size = (matmul.scratch_bytes() + 63) / 64 * 64;
  void* scratch = size != 0 ? std::aligned_alloc(64, size) : nullptr;
  matmul.execute(problem.a.bytes.data(), problem.b.bytes.data(), c.bytes.data(), scratch, max_threads);
  std::free(scratch);
  return c;
}

inline bool equal_bits(const Operand& x, const Operand& y) { return x.bytes == y.bytes; }

// Visits all positions of the axes: call(offset in A, in B, in C).
template <class Call>
void for_each(const std::vector<MatmulAxis>& axes, std::size_t depth, i64 a, i64 b, i64 c, const Call& call) {
  if (depth == axes.size()) {
    call(a, b, c);
    return;
  }
  const MatmulAxis& axis = axes[depth];
  for (i64 i = 0; i < axis.extent; ++i) {
    for_each(axes, depth + 1, a + axis.a * i, b + axis.b * i, c + axis.c * i, call);
  }
}

struct Comparison {
  double worst = 0;       // largest error in units of its bound
  bool untouched = true;  // elements between the strides kept their bits
};

inline Comparison compare(const Problem& problem, const Operand& got) {
  std::vector<MatmulAxis> outer;
  std::vector<MatmulAxis> summed;
  for (const MatmulAxis& axis : problem.spec.axes) (axis.role == MatmulClass::k ? summed : outer).push_back(axis);
  const i64 depth = product_of_extents(summed);
  const bool accumulate = problem.spec.accumulate;
  const double unit = std::ldexp(1.0, -24);
  const double rounding = problem.spec.c == DType::bf16 ? std::ldexp(1.0, -8) : 0.0;  // of the destination
  Comparison result;
  std::vector<bool> written(static_cast<std::size_t>(got.count()), false);
  for_each(outer, 0, 0, 0, 0, [&](i64 a0, i64 b0, i64 c0) {
    double value = accumulate ? problem.c.get(c0) : 0.0;
    double magnitude = std::abs(value);
    for_each(summed, 0, a0, b0, 0, [&](i64 a1, i64 b1, i64) {
      const double product = problem.a.get(a1) * problem.b.get(b1);
      value += product;
      magnitude += std::abs(product);
    });
    const double bound = static_cast<double>(depth + (accumulate ? 1 : 0)) * unit * magnitude +
                         (depth == 0 ? 0.0 : rounding * std::abs(value));
    const double error = std::abs(got.get(c0) - value);
    const double ratio = error == 0.0 ? 0.0 : error / bound;
    result.worst = std::max(result.worst, std::isnan(ratio) ? std::numeric_limits<double>::infinity() : ratio);
    written[static_cast<std::size_t>(c0)] = true;
  });
  const int size = size_of(got.dtype);
  for (i64 i = 0; i < got.count(); ++i) {
    if (written[static_cast<std::size_t>(i)]) continue;
    if (std::memcmp(got.bytes.data() + i * size, problem.c.bytes.data() + i * size, static_cast<std::size_t>(size)) !=
        0) {
      result.untouched = false;
    }
  }
  return result;
}

// C[m,n] of A[m,k] and B[k,n], each dense, `transpose` swapping an operand's storage order.
inline MatmulSpec matrix_product(i64 m, i64 n, i64 k, bool transpose_a = false, bool transpose_b = false,
                                 bool accumulate = false, i64 batch = 1) {
  MatmulSpec spec;
  if (batch != 1) spec.axes.push_back({MatmulClass::batch, batch, m * k, k * n, m * n});
  spec.axes.push_back({MatmulClass::m, m, transpose_a ? 1 : k, 0, n});
  spec.axes.push_back({MatmulClass::n, n, 0, transpose_b ? k : 1, 1});
  spec.axes.push_back({MatmulClass::k, k, transpose_a ? m : 1, transpose_b ? 1 : n, 0});
  spec.accumulate = accumulate;
  return spec;
}

// scores[b,h,s,t] = sum over d of q[b,s,h,d] * k[b,t,h,d]
inline MatmulSpec attention_scores(i64 b, i64 s, i64 t, i64 h, i64 d) {
  MatmulSpec spec;
  spec.axes = {{MatmulClass::batch, b, s * h * d, t * h * d, h * s * t},
               {MatmulClass::batch, h, d, d, s * t},
               {MatmulClass::m, s, h * d, 0, t},
               {MatmulClass::n, t, 0, h * d, 1},
               {MatmulClass::k, d, 1, 1, 0}};
  return spec;
}

// out[b,s,h,d] = sum over t of p[b,h,s,t] * v[b,t,h,d]
inline MatmulSpec attention_values(i64 b, i64 s, i64 t, i64 h, i64 d) {
  MatmulSpec spec;
  spec.axes = {{MatmulClass::batch, b, h * s * t, t * h * d, s * h * d},
               {MatmulClass::batch, h, s * t, d, d},
               {MatmulClass::m, s, t, 0, h * d},
               {MatmulClass::n, d, 0, 1, 1},
               {MatmulClass::k, t, 1, h * d, 0}};
  spec.axes[3].c = 1;
  return spec;
}

}  // namespace tigon::runtime::test
