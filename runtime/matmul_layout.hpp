// Turns a contraction over any number of strided axes into one batched matrix product plus loops; pure arithmetic.
#pragma once
#include <string>
#include <vector>

#include "tigon/dtype.hpp"

namespace tigon::runtime {

// batch: in all three; m: in A and C; n: in B and C; k: in A and B, summed.
enum class MatmulClass : std::uint8_t { batch, m, n, k };

// Strides count elements; an operand that lacks the axis has stride 0.
struct MatmulAxis {
  MatmulClass role;
  i64 extent;
  i64 a, b, c;
};

// C[batch..., m..., n...] = (or +=) the sum over k... of A * B.
struct MatmulSpec {
  std::vector<MatmulAxis> axes;
  DType a = DType::f32;
  DType b = DType::f32;
  DType c = DType::f32;
  bool accumulate = false;
};

// A matrix as (row stride, column stride), one of them 1.
struct MatrixStrides {
  i64 row, column;
};

struct MatmulLayout {
  std::string refusal{};              // a sentence when no form exists; nothing else is set then
  bool empty = false;                 // some extent is zero: nothing to multiply
  bool swapped = false;               // computes the transpose: A and B (and m and n) have changed places below
  MatmulAxis m{}, n{}, k{};           // the matrix product; extent 1 where the class has no axis
  MatrixStrides a{}, b{}, c{};        // of [m,k], [k,n], [m,n]
  std::vector<MatmulAxis> batch{};    // more axes for one batched call; a zero stride is a broadcast
  std::vector<MatmulAxis> loops{};    // one call each, into different parts of C
  std::vector<MatmulAxis> k_loops{};  // one call each, adding into the same part of C
  std::vector<MatmulAxis> c_axes{};   // all axes of C, for filling it with zeros
};

MatmulLayout layout_matmul(const MatmulSpec& spec);

// Where the matrix product is cut so that about `partitions` pieces can run at once. Depends on nothing else, so that
// a result's bits do not depend on how many threads share the pieces.
struct MatmulPieces {
  i64 rows, columns;     // length of a piece along m and n; the last one may be shorter
  int batch_axis = -1;   // the batch axis that is cut as well, or none
  i64 batch_length = 1;  // length of a piece along it
  i64 loop_groups = 1;   // how many parts the loop space is cut into
  i64 count = 1;         // pieces in all
};

MatmulPieces cut_matmul(const MatmulLayout& layout, int partitions);

// A rough guess of the whole product's time on one core.
double estimated_nanoseconds(const MatmulLayout& layout);

i64 product_of_extents(const std::vector<MatmulAxis>& axes);

}  // namespace tigon::runtime
