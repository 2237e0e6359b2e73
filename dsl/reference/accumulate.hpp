// Folds and scatters of the reference: what their states are and what bound they carry.
#pragma once
#include <memory>
#include <span>

#include "dsl/graph.hpp"
#include "dsl/reference/bounded.hpp"

namespace tigon::dsl {

// Takes the elements of each result in order, one result after another, and writes the result's state.
class Accumulator {
 public:
  virtual ~Accumulator() = default;
  virtual void begin() = 0;
  // The operands' values (the state's slots, when states are folded) and the global index along the first folded axis.
  virtual void take(const Bounded* operands, i64 index) = 0;
  virtual void end(std::span<Bounded> state) = 0;
};

struct FoldShape {
  const Monoid& monoid;
  DType element = DType::f32;
  i64 count = 0;  // elements of one result
  bool of_states = false;
  bool contraction = false;  // a sum of products
  bool honour_casts = true;
};
std::unique_ptr<Accumulator> make_accumulator(const FoldShape& shape);

// A sum with the error of its own f64 additions removed.
class CompensatedSum {
 public:
  void add(double x) {
    const double sum = sum_ + x;
    lost_ += std::abs(sum_) >= std::abs(x) ? (sum_ - sum) + x : (x - sum) + sum_;
    sum_ = sum;
  }
  [[nodiscard]] double value() const { return std::isfinite(sum_) && std::isfinite(lost_) ? sum_ + lost_ : sum_; }

 private:
  double sum_ = -0.0;
  double lost_ = -0.0;
};

// A sum whose bound is that of adding its elements in any order within a depth.
class BoundedSum {
 public:
  void add(const Bounded& x) {
    sum_.add(x.value);
    magnitude_ += std::abs(x.value);
    bound_ += x.bound;
    undetermined_ = undetermined_ || x.undetermined;
    ++count_;
    note_grain(x);
  }
  [[nodiscard]] i64 count() const { return count_; }
  [[nodiscard]] Bounded result(double depth, const Rounding& rounding) const;

 private:
  // Exact numbers that are multiples of one power of two add without rounding while the sum is small against it.
  void note_grain(const Bounded& x) {
    if (grains_ == 0) return;
    if (x.bound != 0 || !(std::abs(x.value) < 0x1p31)) {
      grains_ = 0;
      return;
    }
    while (static_cast<double>(static_cast<i64>(x.value * grains_)) != x.value * grains_) {
      grains_ *= 2;
      if (grains_ > 4096) {
        grains_ = 0;
        return;
      }
    }
  }

  CompensatedSum sum_;
  double magnitude_ = 0;
  double bound_ = 0;
  i64 count_ = 0;
  bool undetermined_ = false;
  double grains_ = 1;  // in one; 0: the elements are not such numbers
};

}  // namespace tigon::dsl
