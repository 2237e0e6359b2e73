// Optional arguments: what a function was compiled without, a launch may not bring.
#include "tests/runtime/error_text.hpp"
#include "tigon/tigon.hpp"

namespace optional_test {
using namespace tigon;
using test::message_of;
using test::says;

struct Rows : axis<"rows"> {};
template <template <class> class Slot>
struct BiasedArgs {
  TIGON_ARGS(BiasedArgs, (Slot<f32(Rows)>, x), (Slot<maybe<f32(Rows)>>, bias));
};
const auto biased =
    function("biased", [](const BiasedArgs<Tensor>& in) { return in.bias ? in.x + *in.bias : broadcast<Rows>(in.x); });

TEST_CASE(
    "an optional argument that the function was compiled without is refused, and taken where it was compiled for") {
  std::vector<float> x(4, 1), bias(4, 2);
  BiasedArgs<Buffer> args;
  args.x = Buffer<f32(Rows)>(x.data(), {4});
  const auto without = compile(biased, extents<Rows>(4));
  CHECK(without(Stream(), args).value.data[1] == 1.0F);
  args.bias = Buffer<f32(Rows)>(bias.data(), {4});
  for (int launch = 0; launch < 2; ++launch) {  // before and after the extents are known
    CHECK(says(message_of([&] { without(Stream(), args); }),
               {"biased: an optional argument is given", "`bias`", "shape_of(args)"}));
  }
  const auto with = compile(biased, shape_of(args), extents<Rows>(4));
  CHECK(with(Stream(), args).value.data[1] == 3.0F);
}

}  // namespace optional_test
