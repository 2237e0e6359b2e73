// Names that end a comment, open a function or are longer than LLVM takes change nothing but their own spelling.
#include "tests/runtime/error_text.hpp"
#include "tigon/tigon.hpp"

namespace {

using namespace tigon;

struct Lines : axis<"li\nnes\n}"> {};
struct Hidden : axis<"hid;den \\"> {};

template <template <class> class Slot>
struct HostileArgs {
  TIGON_ARGS(HostileArgs, (Slot<f32(Lines, Hidden)>, x), (Slot<f32(Hidden)>, weight), (Slot<scalar<f32>>, scale));
};

float result_of(const std::string& function_name, const std::string& value_name, bool unfused) {
  const auto f = function(function_name, [&](const HostileArgs<Tensor>& in) {
    auto twice = monoid<1, 1>(value_name + " twice", {0.0})
                     .lift([](auto x, Scalar) { return std::array{x[0] * 2}; })
                     .merge([](auto a, auto b) { return std::array{a[0] + b[0]}; })
                     .finish(value_name, [](auto s) { return s[0]; });
    const auto product = named(in.x * in.weight * in.scale, value_name);
    return named(fold<Hidden>(twice, product).finish(value_name) + sum<Hidden>(named(exp(product), value_name)),
                 value_name);
  });
  const auto step = compile(f, extents<Lines, Hidden>(2, 3), {.unfused = unfused});
  float x[6] = {0, 0, 0, 1, 2, 3}, weight[3] = {0, 0, 0};
  return step(Stream(),
              {.x = Buffer<f32(Lines, Hidden)>(x, {2, 3}), .weight = Buffer<f32(Hidden)>(weight, {3}), .scale = 2.0F})
      .value.data[1];
}

}  // namespace

TEST_CASE("a name may hold anything") {
  for (const bool unfused : {false, true}) {
    for (const std::string& name :
         {std::string("y\n  store i8 0, ptr null\n"), std::string("y\n}\ndefine void @evil() {\n"), std::string("\\"),
          std::string(1100, 'n'), std::string(100000, '\n'), std::string("\0\x1b\xff", 3), std::string("*/ \" ' ?\?/"),
          std::string("größe"), std::string(" "), std::string()}) {
      INFO(name.substr(0, 40));
      CHECK(result_of("f", name, unfused) == 3);
      CHECK(result_of(name, "value", unfused) == 3);
    }
  }
}
