// Chooses which axes become the matrix product, its batch and the loops around it, and where to cut it into pieces.
#include "runtime/matmul_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace tigon::runtime {
namespace {

constexpr std::size_t most_batch_axes = 10;  // the library's limit of 12 dimensions, less the matrix's two

constexpr const char* role_name(MatmulClass role) {
  constexpr std::array<const char*, 4> names = {"batch", "m", "n", "k"};
  return names[static_cast<std::size_t>(role)];
}

std::string check(const MatmulSpec& spec) {
  for (std::size_t i = 0; i < spec.axes.size(); ++i) {
    const MatmulAxis& axis = spec.axes[i];
    const char* role = role_name(axis.role);
    if (axis.extent < 0) return fmt::format("axis {} has the negative extent {}", i, axis.extent);
    if (axis.a < 0 || axis.b < 0 || axis.c < 0) return fmt::format("axis {} has a negative stride", i);
    if (axis.extent <= 1) continue;
    if (axis.role == MatmulClass::m && axis.b != 0) return fmt::format("axis {} of class m moves through B", i);
    if (axis.role == MatmulClass::n && axis.a != 0) return fmt::format("axis {} of class n moves through A", i);
    if (axis.role == MatmulClass::k && axis.c != 0) return fmt::format("axis {} of class k moves through C", i);
    if (axis.role != MatmulClass::k && axis.c == 0) {
      return fmt::format("axis {} of class {} has stride 0 in C, so several results would share one element", i, role);
    }
    if (axis.role == MatmulClass::k && (axis.a == 0 || axis.b == 0)) {
      return fmt::format("axis {} of class k is missing in an operand, so it is a fold and not a contraction", i);
    }
  }
  return {};
}

bool merges(const MatmulAxis& outer, const MatmulAxis& inner) {
  return outer.a == inner.a * inner.extent && outer.b == inner.b * inner.extent && outer.c == inner.c * inner.extent;
}

void collapse(std::vector<MatmulAxis>& axes) {
  for (bool again = true; again;) {
    again = false;
    for (std::size_t outer = 0; outer < axes.size() && !again; ++outer) {
      for (std::size_t inner = 0; inner < axes.size() && !again; ++inner) {
        if (outer == inner || !merges(axes[outer], axes[inner])) continue;
        axes[inner].extent *= axes[outer].extent;
        axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(outer));
        again = true;
      }
    }
  }
}

// Large steps outside, as they lie in memory.
void sort_by_destination(std::vector<MatmulAxis>& axes) {
  std::sort(axes.begin(), axes.end(), [](const MatmulAxis& x, const MatmulAxis& y) {
    return std::array{x.c, x.a, x.b, x.extent} > std::array{y.c, y.a, y.b, y.extent};
  });
}

// The strides of a rows x columns matrix in a form the library takes, if there is one. An extent of one leaves its
// stride free, so a vector may have any step; the destination needs unit steps along columns.
std::optional<MatrixStrides> matrix(i64 rows, i64 row_stride, i64 columns, i64 column_stride, bool destination) {
  if (columns == 1) return MatrixStrides{rows == 1 ? 1 : row_stride, 1};
  if (rows == 1) {
    if (column_stride == 1) return MatrixStrides{columns, 1};
    if (destination) return std::nullopt;
    return MatrixStrides{1, column_stride};
  }
  if (column_stride == 1 && row_stride >= columns) return MatrixStrides{row_stride, 1};
  if (!destination && row_stride == 1 && column_stride >= rows) return MatrixStrides{1, column_stride};
  return std::nullopt;
}

struct Classes {
  std::vector<MatmulAxis> batch, m, n, k, loops;
};

Classes classify(const MatmulSpec& spec) {
  Classes classes;
  for (MatmulAxis axis : spec.axes) {
    if (axis.extent == 1) continue;
    if (axis.role == MatmulClass::k) {
      classes.k.push_back(axis);
    } else if (axis.a == 0 && axis.b == 0) {
      classes.loops.push_back(axis);
    } else if (axis.b == 0) {
      classes.m.push_back(axis);
    } else if (axis.a == 0) {
      classes.n.push_back(axis);
    } else {
      classes.batch.push_back(axis);
    }
  }
  for (std::vector<MatmulAxis>* axes : {&classes.batch, &classes.m, &classes.n, &classes.k, &classes.loops}) {
    collapse(*axes);
    sort_by_destination(*axes);
  }
  return classes;
}

Classes transposed(Classes classes) {
  std::swap(classes.m, classes.n);
  for (std::vector<MatmulAxis>* axes : {&classes.batch, &classes.m, &classes.n, &classes.k, &classes.loops}) {
    for (MatmulAxis& axis : *axes) std::swap(axis.a, axis.b);
  }
  return classes;
}

// The axis at `index`, or a missing one for an index past the end.
MatmulAxis axis_at(const std::vector<MatmulAxis>& axes, std::size_t index, MatmulClass role) {
  if (index < axes.size()) return axes[index];
  return {role, 1, 0, 0, 0};
}

void append_except(std::vector<MatmulAxis>& target, const std::vector<MatmulAxis>& axes, std::size_t except) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (i != except) target.push_back(axes[i]);
  }
}

// The best choice of m, n and k in one orientation: the one with the most work per matrix product.
void choose(const Classes& classes, bool swapped, MatmulLayout& best, double& best_work) {
  for (std::size_t m = 0; m <= classes.m.size(); ++m) {
    for (std::size_t n = 0; n <= classes.n.size(); ++n) {
      for (std::size_t k = 0; k < std::max<std::size_t>(1, classes.k.size()); ++k) {
        const MatmulAxis rows = axis_at(classes.m, m, MatmulClass::m);
        const MatmulAxis columns = axis_at(classes.n, n, MatmulClass::n);
        const MatmulAxis depth = axis_at(classes.k, k, MatmulClass::k);
        const auto a = matrix(rows.extent, rows.a, depth.extent, depth.a, false);
        const auto b = matrix(depth.extent, depth.b, columns.extent, columns.b, false);
        const auto c = matrix(rows.extent, rows.c, columns.extent, columns.c, true);
        if (!a || !b || !c) continue;
        const double work =
            static_cast<double>(rows.extent) * static_cast<double>(columns.extent) * static_cast<double>(depth.extent);
        if (work <= best_work) continue;
        best_work = work;
        best.swapped = swapped;
        best.m = rows;
        best.n = columns;
        best.k = depth;
        best.a = *a;
        best.b = *b;
        best.c = *c;
        best.batch = classes.batch;
        best.loops = classes.loops;
        append_except(best.batch, classes.m, m);
        append_except(best.batch, classes.n, n);
        best.k_loops.clear();
        append_except(best.k_loops, classes.k, k);
      }
    }
  }
}

i64 round_up(i64 value, i64 multiple) { return (value + multiple - 1) / multiple * multiple; }
i64 divide_up(i64 value, i64 divisor) { return (value + divisor - 1) / divisor; }

}  // namespace

i64 product_of_extents(const std::vector<MatmulAxis>& axes) {
  i64 product = 1;
  for (const MatmulAxis& axis : axes) product *= axis.extent;
  return product;
}

MatmulLayout layout_matmul(const MatmulSpec& spec) {
  MatmulLayout layout;
  layout.refusal = check(spec);
  if (!layout.refusal.empty()) return layout;
  for (const MatmulAxis& axis : spec.axes) {
    if (axis.extent == 0) layout.empty = true;
    if (axis.role != MatmulClass::k && axis.extent != 1) layout.c_axes.push_back(axis);
  }
  sort_by_destination(layout.c_axes);
  if (layout.empty) return layout;

  const Classes classes = classify(spec);
  double best_work = 0;
  choose(classes, false, layout, best_work);
  choose(transposed(classes), true, layout, best_work);
  sort_by_destination(layout.batch);
  while (layout.batch.size() > most_batch_axes) {
    layout.loops.push_back(layout.batch.front());
    layout.batch.erase(layout.batch.begin());
  }
  if (spec.c == DType::bf16 && !layout.k_loops.empty()) {
    layout.refusal = "the summed axes do not collapse into one, and a bf16 destination would round between them";
  }
  return layout;
}

// About 50 GFLOP/s a core and 0.4 us a call, measured low on purpose: too few pieces cost less than too small ones.
double estimated_nanoseconds(const MatmulLayout& layout) {
  if (layout.empty) return 0;
  const double calls =
      static_cast<double>(product_of_extents(layout.loops)) * static_cast<double>(product_of_extents(layout.k_loops));
  const double multiplies = static_cast<double>(layout.m.extent) * static_cast<double>(layout.n.extent) *
                            static_cast<double>(layout.k.extent) *
                            static_cast<double>(product_of_extents(layout.batch));
  return calls * (400.0 + multiplies * 2.0 / 50.0);
}

MatmulPieces cut_matmul(const MatmulLayout& layout, int partitions) {
  MatmulPieces pieces{.rows = layout.m.extent, .columns = layout.n.extent};
  constexpr double smallest_piece_nanoseconds = 20000.0;  // below, waking threads and repeated packing show
  const double affordable = estimated_nanoseconds(layout) / smallest_piece_nanoseconds;
  const i64 wanted = affordable < partitions ? static_cast<i64>(affordable) : partitions;
  if (wanted <= 1) return pieces;

  pieces.loop_groups = std::min(wanted, product_of_extents(layout.loops));
  pieces.count = pieces.loop_groups;
  const i64 inner = wanted / pieces.loop_groups;
  if (inner <= 1) return pieces;

  // Relative time of one piece: its share of the work, and more for thin pieces, whose packing serves fewer products
  // (12 fits 64..512 rows of a 512 x 1024 x 32000 product within 5 %).
  const i64 m = layout.m.extent;
  const i64 n = layout.n.extent;
  const auto cost_of = [&](double batch_share, i64 rows, i64 columns) {
    const double thinness = 1.0 + 12.0 / static_cast<double>(rows) + 12.0 / static_cast<double>(columns);
    return batch_share * thinness * static_cast<double>(rows) * static_cast<double>(columns);
  };
  constexpr i64 alignment = 16;  // floats in a cache line, and a multiple of the kernels' tiles
  double best = cost_of(1.0, m, n);
  const auto consider = [&](int batch_axis, i64 batch_extent, i64 batch_length, i64 parts) {
    for (i64 down = parts; down >= 1; --down) {
      const i64 rows = std::min(m, round_up(divide_up(m, down), alignment));
      const i64 columns = std::min(n, round_up(divide_up(n, parts / down), alignment));
      const double cost = cost_of(static_cast<double>(batch_length) / static_cast<double>(batch_extent), rows, columns);
      if (cost >= best) continue;
      best = cost;
      pieces.batch_axis = batch_axis;
      pieces.batch_length = batch_length;
      pieces.rows = rows;
      pieces.columns = columns;
      pieces.count =
          pieces.loop_groups * divide_up(batch_extent, batch_length) * divide_up(m, rows) * divide_up(n, columns);
    }
  };
  // Outer batch axes first: on equal cost their cut leaves each piece's matrices as densely packed as before.
  for (std::size_t i = 0; i < layout.batch.size(); ++i) {
    const i64 extent = layout.batch[i].extent;
    const i64 length = divide_up(extent, std::min(inner, extent));
    consider(static_cast<int>(i), extent, length, std::max<i64>(1, inner / divide_up(extent, length)));
  }
  consider(-1, 1, 1, inner);
  return pieces;
}

}  // namespace tigon::runtime
