// Values between arguments and results may have more axes than a buffer does; what a launch hands out may not.
#include "dsl/build.hpp"
#include "tests/runtime/error_text.hpp"
#include "tigon/tigon.hpp"

namespace {

using namespace tigon;
using test::message_of;

template <int number>
struct Part : axis<"part", 2> {};

using Left = f32(Part<1>, Part<2>, Part<3>, Part<4>, Part<5>);
using Right = f32(Part<5>, Part<6>, Part<7>, Part<8>, Part<9>);

template <template <class> class Slot>
struct OuterArgs {
  TIGON_ARGS(OuterArgs, (Slot<Left>, x), (Slot<Right>, y));
};

// Nine axes, of which two folds in sequence leave one.
const auto outer = function("outer", [](const OuterArgs<Tensor>& in) {
  const auto product = exp(in.x * in.y);
  const auto top = max<Part<1>, Part<2>, Part<3>, Part<4>>(product);
  return sum<Part<1>, Part<2>, Part<3>, Part<4>, Part<6>, Part<7>, Part<8>, Part<9>>(product - top);
});

struct Bench {
  Owned<Left> x = allocate<Left>({2, 2, 2, 2, 2});
  Owned<Right> y = allocate<Right>({2, 2, 2, 2, 2});
  double expected[2] = {0, 0};
  Bench() {
    for (int i = 0; i < 32; ++i) {
      x.data[i] = 0.03F * static_cast<float>(i) - 0.4F;
      y.data[i] = 0.05F * static_cast<float>(7 * i % 32) - 0.7F;
    }
    for (int shared = 0; shared < 2; ++shared) {
      for (int right = 0; right < 16; ++right) {
        double top = 0, total = 0;
        for (int left = 0; left < 16; ++left) {
          const double value = std::exp(static_cast<double>(x.data[left * 2 + shared]) * y.data[shared * 16 + right]);
          top = std::max(top, value);
          total += value;
        }
        expected[shared] += total - 16 * top;
      }
    }
  }
};

}  // namespace

TEST_CASE("a value of nine axes is computed, in registers or stored") {
  const Bench f;
  for (const bool unfused : {false, true}) {
    const auto out = compile(outer, extents<>(), {.unfused = unfused})(Stream(), {.x = f.x, .y = f.y});
    for (int i = 0; i < 2; ++i) CHECK(static_cast<double>(out.value.data[i]) == Approx(f.expected[i]).epsilon(1e-5));
  }
}

TEST_CASE("a result or an argument of nine axes is refused, also where no C++ type says so") {
  for (const bool result : {false, true}) {
    dsl::Builder b("nine");
    std::vector<dsl::AxisId> axes;
    for (int i = 0; i < 9; ++i) axes.push_back(b.axis(nullptr, "a" + std::to_string(i), 2));
    const dsl::NodeId x = b.input("x", DType::f32, {axes.begin(), axes.end() - (result ? 1 : 0)});
    const dsl::NodeId y = result ? b.broadcast(x, dsl::AxisSet::of(axes[8])) : b.sum(x, {axes[8]});
    b.output({"y", y, DType::f32, {axes.begin(), axes.end() - (result ? 0 : 1)}});
    const auto graph = std::make_shared<const dsl::Graph>(std::move(b).finish());
    CHECK(
        message_of([&] { detail::compile_core({graph, {"x"}, {}, {"y"}, {}, {}}); }) ==
        std::string("nine: a tensor that memory holds has too many axes (argument `") + (result ? "y" : "x") +
            "`): found 9 axes, expected at most 8. Merge some of them; a gradient that saves such a value for later is "
            "had with vjp instead");
  }
}

TEST_CASE("the gradient through a value of nine axes") {
  const auto saving = function("saving", [](const OuterArgs<Tensor>& in) {
    return sum<Part<1>, Part<2>, Part<3>, Part<4>, Part<6>, Part<7>, Part<8>, Part<9>>(exp(in.x * in.y));
  });
  const Bench f;
  const auto pull = compile(vjp(saving, wrt<"x">), extents<>());
  float dy[2] = {1, 1};
  const auto out =
      pull(Stream(), {.arguments = {.x = f.x, .y = f.y}, .upstream = {.value = Buffer<f32(Part<5>)>(dy, {2})}});
  double expected = 0;
  for (int right = 0; right < 16; ++right) {
    const double y = f.y.data[right];
    expected += y * std::exp(static_cast<double>(f.x.data[0]) * y);
  }
  CHECK(static_cast<double>(out.grad.x.buffer().data[0]) == Approx(expected).epsilon(1e-5));
}
