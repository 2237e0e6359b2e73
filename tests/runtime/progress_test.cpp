// A compile tells of each kernel that has become ready.
#include "tigon/tigon.hpp"

namespace progress_test {
using namespace tigon;

struct Rows : axis<"rows"> {};
struct Columns : axis<"columns"> {};
template <template <class> class Slot>
struct ProgressArgs {
  TIGON_ARGS(ProgressArgs, (Slot<f32(Rows, Columns)>, x));
};
const auto column_spread =
    function("column_spread", [](const ProgressArgs<Tensor>& in) { return sum<Columns>(in.x - mean<Rows>(in.x)); });

TEST_CASE("progress counts every kernel of a compile, by name") {
  std::vector<std::size_t> done;
  std::size_t total = 0;
  bool named = true;
  const auto progress = [&](const CompileProgress& now) {
    done.push_back(now.done);
    total = now.total;
    named = named && now.kernel.find("column_spread") != std::string_view::npos;
  };
  compile(column_spread, extents<Rows, Columns>(40, 50), {.unfused = true, .progress = progress});
  REQUIRE(total > 1);
  REQUIRE(done.size() == total);
  for (std::size_t i = 0; i < total; ++i) CHECK(done[i] == i + 1);
  CHECK(named);
}

TEST_CASE("what progress throws ends the compile") {
  struct Cancelled {};
  const auto cancel = [](const CompileProgress&) { throw Cancelled(); };
  CHECK_THROWS_AS(compile(column_spread, extents<Rows, Columns>(40, 50), {.progress = cancel}), Cancelled);
}

}  // namespace progress_test
