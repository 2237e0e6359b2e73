// softmax of rows that are masked as a whole: 0 with gradient 0 in both spellings, compiled; logsumexp says -infinity.
#include <cmath>
#include <limits>

#include "tigon/ops/all.hpp"
#include "tigon/tigon.hpp"

namespace {

using namespace tigon;

struct Rows : axis<"rows"> {};
struct Columns : axis<"columns"> {};

template <template <class> class Slot>
struct RowsArgs {
  TIGON_ARGS(RowsArgs, (Slot<f32(Rows, Columns)>, x), (Slot<f32(Rows, Columns)>, weight));
};
template <template <class> class Slot>
struct RowsOut {
  TIGON_OUT(RowsOut, (Slot<f32(Rows, Columns)>, plain), (Slot<f32(Rows, Columns)>, op), (Slot<f32(Rows)>, lse));
};

}  // namespace

TEST_CASE("a row that holds nothing but -infinity has softmax 0 and gradient 0") {
  constexpr float nothing = -std::numeric_limits<float>::infinity();
  const auto both = function("both", [](const RowsArgs<Tensor>& in) {
    return RowsOut<Tensor>{
        .plain = softmax<Columns>(in.x), .op = ops::softmax<Columns>(in.x), .lse = logsumexp<Columns>(in.x)};
  });
  const auto weighed = [](auto softmax_of) {
    return function("weighed", [softmax_of](const RowsArgs<Tensor>& in) {
      return sum<Rows, Columns>(softmax_of(in.x) * in.weight);
    });
  };
  for (const std::int64_t columns : {1, 7, 64, 1000}) {
    const auto given = extents<Rows, Columns>(3, columns);
    const auto x = allocate<f32(Rows, Columns)>({3, columns});
    const auto weight = allocate<f32(Rows, Columns)>({3, columns});
    for (std::int64_t c = 0; c < columns; ++c) {
      x.data[c] = nothing;                            // all masked
      x.data[columns + c] = c == 0 ? 0.5F : nothing;  // one left
      x.data[2 * columns + c] = 0.25F * static_cast<float>(c % 5);
      for (int row = 0; row < 3; ++row) weight.data[row * columns + c] = static_cast<float>(c % 3 + 1);
    }
    const RowsArgs<Buffer> args{.x = x, .weight = weight};
    const auto out = compile(both, given)(Stream(), args);
    CHECK(out.lse.data[0] == nothing);
    CHECK(out.lse.data[1] == 0.5F);
    const auto plain_gradient = compile(
        value_and_grad(weighed([](const auto& t) { return softmax<Columns>(t); }), wrt<"x">), given)(Stream(), args);
    const auto op_gradient =
        compile(value_and_grad(weighed([](const auto& t) { return ops::softmax<Columns>(t); }), wrt<"x">), given)(
            Stream(), args);
    const float* dx = plain_gradient.grad.x.buffer().data;
    const float* dx_of_op = op_gradient.grad.x.buffer().data;
    double sum_of_row = 0;
    for (std::int64_t i = 0; i < 3 * columns; ++i) {
      INFO("columns " << columns << ", element " << i);
      CHECK(out.plain.data[i] == out.op.data[i]);
      CHECK(dx[i] == dx_of_op[i]);
      if (i < columns) CHECK((out.plain.data[i] == 0 && dx[i] == 0));
      if (i >= columns && i < 2 * columns) {
        CHECK(out.plain.data[i] == (i == columns ? 1.0F : 0.0F));
        CHECK(dx[i] == 0);
      }
      if (i >= 2 * columns) sum_of_row += out.plain.data[i];
    }
    CHECK(sum_of_row == Approx(1).epsilon(1e-5));
  }
}
