// Floats that no integer holds become the nearest one, NaN becomes 0, as on the CPU: the machine's own cvt makes
// 0x8000... of NaN where either side has 64 bits.
#include <cmath>
#include <limits>

#include "dsl/build.hpp"
#include "emulated_run.hpp"
#include "support.hpp"

namespace tigon::testing {

TEST_CASE("emulated: floats become integers, whatever they hold", "[values]") {
  if (nvrtc_or_skip() == nullptr) return;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> samples = {
      0,    -0.0,  0.75, -0.75, -1234.5,  2147483520.0, 2147483648.0, -2147483648.0, 4294967296.0,
      1e18, -1e18, 1e30, -1e30, infinity, -infinity,    std::nan("")};
  for (const DType from : {DType::f32, DType::f64}) {
    dsl::Builder b("whole");
    const dsl::AxisId t = b.axis(nullptr, "t");
    const dsl::NodeId x = b.input("x", from, {t});
    b.output({"small", b.cast(DType::i32, x), DType::i32, {t}});
    b.output({"large", b.cast(DType::i64, x), DType::i64, {t}});
    const dsl::Graph graph = std::move(b).finish();
    dsl::EvaluateInputs inputs;
    inputs.extents = {static_cast<std::int64_t>(samples.size())};
    dsl::TensorValue tensor;
    tensor.dtype = from;
    tensor.axes = {t};
    tensor.extents = inputs.extents;
    for (const double sample : samples)
      tensor.value.push_back(from == DType::f32 ? static_cast<double>(static_cast<float>(sample)) : sample);
    tensor.bound.assign(samples.size(), 0);
    inputs.tensors.push_back(tensor);
    const EmulatedRun run = run_emulated(graph, inputs);
    CHECK(run.faults == "");
    REQUIRE(run.bytes.size() == 2);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      INFO(name(from) << " " << samples[i]);
      const auto nearest = [&]<class Integer>(Integer) {
        constexpr double end = -static_cast<double>(std::numeric_limits<Integer>::min());
        const double value = tensor.value[i];
        if (std::isnan(value)) return Integer{0};
        if (value >= end) return std::numeric_limits<Integer>::max();
        return value < -end ? std::numeric_limits<Integer>::min() : static_cast<Integer>(value);
      };
      const auto stored = [&]<class Integer>(std::size_t output, Integer) {
        Integer value;
        std::memcpy(&value, run.bytes[output].data() + i * sizeof value, sizeof value);
        return value;
      };
      CHECK(stored(0, std::int32_t{}) == nearest(std::int32_t{}));
      CHECK(stored(1, std::int64_t{}) == nearest(std::int64_t{}));
    }
  }
}

}  // namespace tigon::testing
