// The scalar table: rows in order, stable values, and derivatives against differences at points away from kinks.
#include "dsl/scalar_table.hpp"

#include <cmath>

#include "differentiate_support.hpp"
#include "dsl/scalar_derivative.hpp"

namespace tigon::dsl::testing {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
double value(ScalarOp op, double a, double b = 0, double c = 0) { return info(op).reference(a, b, c); }
double slope(ScalarOp op, int operand, std::vector<double> x) { return derivative(op, operand, x); }

}  // namespace

TEST_CASE("every row is complete") {
  std::vector<std::string_view> names;
  for (int i = 0; i < scalar_op_count; ++i) {
    const ScalarOpInfo& row = info(static_cast<ScalarOp>(i));
    INFO(row.name);
    CHECK(static_cast<int>(row.op) == i);
    CHECK(row.arity >= 1);
    CHECK(row.arity <= 3);
    CHECK(row.cuda.find("{0}") != std::string_view::npos);
    for (int k = 1; k < row.arity; ++k) CHECK(row.cuda.find("{" + std::to_string(k) + "}") != std::string_view::npos);
    CHECK_FALSE(row.llvm.empty());
    CHECK(row.cost > 0);
    CHECK((!row.commutative || row.arity == 2));
    CHECK(std::find(names.begin(), names.end(), row.name) == names.end());
    names.push_back(row.name);
  }
}

TEST_CASE("commutative rows are commutative bit for bit") {
  for (int i = 0; i < scalar_op_count; ++i) {
    const ScalarOpInfo& row = info(static_cast<ScalarOp>(i));
    if (!row.commutative) continue;
    for (const double a : {-0.0, 0.0, 1.0, -3.0, 7.0}) {
      for (const double b : {-0.0, 0.0, 2.0, 5.0}) {
        INFO(row.name << " " << a << " " << b);
        CHECK(std::bit_cast<std::uint64_t>(row.reference(a, b, 0)) ==
              std::bit_cast<std::uint64_t>(row.reference(b, a, 0)));
      }
    }
  }
}

TEST_CASE("derivatives follow differences") {
  for (int i = 0; i < scalar_op_count; ++i) {
    const auto op = static_cast<ScalarOp>(i);
    const ScalarOpInfo& row = info(op);
    for (std::vector<double> x : {std::vector{0.375, 0.7, 0.9}, std::vector{0.8, 0.3, 0.6}}) {
      if (op == log1mexp) x[0] = -x[0];
      if (op == where) x[0] = 1;
      x.resize(static_cast<std::size_t>(row.arity));
      for (int k = 0; k < row.arity; ++k) {
        if (!has_derivative(op, k)) {
          CHECK(slope(op, k, x) == 0);
          continue;
        }
        const double step = 1e-6;
        std::array<double, 3> above{}, below{};
        std::copy(x.begin(), x.end(), above.begin());
        below = above;
        above[static_cast<std::size_t>(k)] += step;
        below[static_cast<std::size_t>(k)] -= step;
        const double difference =
            (row.reference(above[0], above[1], above[2]) - row.reference(below[0], below[1], below[2])) / (2 * step);
        INFO(row.name << " operand " << k);
        CHECK(slope(op, k, x) == Approx(std::fabs(difference)).epsilon(1e-6).margin(1e-9));
      }
    }
  }
}

TEST_CASE("ties, kinks and special values") {
  CHECK(slope(relu, 0, {0.0}) == 0);
  CHECK(slope(abs, 0, {0.0}) == 0);
  CHECK(slope(min, 0, {2, 2}) == 1);
  CHECK(slope(min, 1, {2, 2}) == 0);
  CHECK(slope(max, 0, {2, 2}) == 1);
  CHECK(slope(max, 1, {2, 2}) == 0);
  CHECK(slope(clamp, 0, {1, 1, 3}) == 1);
  CHECK(slope(clamp, 0, {3, 1, 3}) == 1);
  CHECK(slope(clamp, 0, {3.5, 1, 3}) == 0);
  CHECK(value(mul0, 0, infinity) == 0);
  CHECK(slope(mul0, 0, {0, infinity}) == 0);
  CHECK(std::isnan(value(mul0, 1, NAN)));
  CHECK(value(logaddexp, -infinity, -infinity) == -infinity);
  CHECK(slope(logaddexp, 0, {-infinity, -infinity}) == 0);
  CHECK(slope(logaddexp, 0, {3, -infinity}) == 1);
  CHECK(slope(pow, 0, {0, 2}) == 0);
  CHECK(slope(pow, 0, {0, 0}) == 0);
  CHECK(slope(pow, 1, {0, 2}) == 0);
  CHECK(value(log1mexp, -1e-20) == Approx(std::log(1e-20)));
  CHECK(slope(log1mexp, 0, {-1e-12}) == Approx(1e12));
  CHECK(value(softplus, 800) == 800);
  CHECK(value(log_sigmoid, -800) == -800);
  CHECK(slope(log_sigmoid, 0, {-800}) == 1);
  CHECK(value(round, 2.5) == 2);
  CHECK(value(floor_div, -7, 2) == -4);
  CHECK(value(rem, -7, 2) == 1);
  for (const ScalarOp op : {min, max}) {
    CHECK(std::isnan(value(op, NAN, 1)));
    CHECK(std::isnan(value(op, 1, NAN)));
  }
  CHECK(std::isnan(value(relu, NAN)));
  CHECK(std::isnan(value(clamp, NAN, 0, 1)));
}

}  // namespace tigon::dsl::testing
