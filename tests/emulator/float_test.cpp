// Floating-point arithmetic and conversions, instruction by instruction: rounding, flushing, NaN, signed zeros.
#include <limits>

#include "kernels.hpp"
#include "runtime/emulator/half.hpp"

using namespace emulator_test;
using namespace tigon::emulator;
using Values = std::vector<std::uint64_t>;

namespace {
constexpr float tiny = 1e-40F;  // subnormal
const float infinity = std::numeric_limits<float>::infinity();
constexpr std::uint64_t nan32 = 0x7fffffff;
}  // namespace

TEST_CASE("f32 sums and products round, flush and saturate") {
  CHECK(execute("add.rn.f32 %d, %a, %b;", 4, 4, {bits(1.0F)}, {bits(0x1p-24F)}) == Values{bits(1.0F)});
  CHECK(execute("add.rp.f32 %d, %a, %b;", 4, 4, {bits(1.0F)}, {bits(0x1p-24F)}) == Values{bits(1.0F + 0x1p-23F)});
  CHECK(execute("add.rz.f32 %d, %a, %b;", 4, 4, {bits(-1.0F)}, {bits(-0x1p-24F)}) == Values{bits(-1.0F)});
  CHECK(execute("add.rm.f32 %d, %a, %b;", 4, 4, {bits(-1.0F)}, {bits(-0x1p-40F)}) == Values{bits(-1.0F - 0x1p-23F)});
  CHECK(execute("add.rm.f32 %d, %a, %b;", 4, 4, {bits(1.0F)}, {bits(-1.0F)}) == Values{bits(-0.0F)});
  CHECK(execute("add.f32 %d, %a, %b;", 4, 4, {bits(tiny)}, {bits(tiny)}) == Values{bits(tiny + tiny)});
  CHECK(execute("add.ftz.f32 %d, %a, %b;", 4, 4, {bits(tiny)}, {bits(tiny)}) == Values{0});
  CHECK(execute("sub.f32 %d, %a, %b;", 4, 4, {bits(infinity)}, {bits(infinity)}) == Values{nan32});
  CHECK(execute("mul.rn.f32 %d, %a, %b;", 4, 4, {bits(3.0F), bits(-0.0F)}, {bits(0.1F), bits(2.0F)}) ==
        Values{bits(3.0F * 0.1F), bits(-0.0F)});
  CHECK(execute("mul.rz.f32 %d, %a, %b;", 4, 4, {bits(3e38F)}, {bits(10.0F)}) ==
        Values{bits(std::numeric_limits<float>::max())});
  CHECK(execute("mul.rn.f32 %d, %a, %b;", 4, 4, {bits(3e38F)}, {bits(10.0F)}) == Values{bits(infinity)});
  CHECK(execute("add.sat.f32 %d, %a, %b;", 4, 4, {bits(0.7F), bits(-3.0F), 0x7fc00001}, {bits(0.7F)}) ==
        Values{bits(1.0F), 0, 0});
  CHECK(execute("fma.rn.f32 %d, %a, %b, %c;", 4, 4, {bits(1.0F + 0x1p-23F)}, {bits(1.0F + 0x1p-23F)}, {bits(-1.0F)}) ==
        Values{bits(std::fma(1.0F + 0x1p-23F, 1.0F + 0x1p-23F, -1.0F))});
  CHECK(execute("fma.rp.f32 %d, %a, %b, %c;", 4, 4, {bits(0x1p-30F)}, {bits(0x1p-30F)}, {bits(1.0F)}) ==
        Values{bits(1.0F + 0x1p-23F)});
  CHECK(execute("fma.rz.ftz.f32 %d, %a, %b, %c;", 4, 4, {bits(tiny)}, {bits(1e10F)}, {bits(1.0F)}) ==
        Values{bits(1.0F)});
  CHECK(execute("div.rn.f32 %d, %a, %b;", 4, 4, {bits(1.0F), bits(1.0F), 0}, {bits(3.0F), 0, 0}) ==
        Values{bits(1.0F / 3.0F), bits(infinity), nan32});
  CHECK(execute("div.rp.f32 %d, %a, %b;", 4, 4, {bits(1.0F)}, {bits(3.0F)}) == Values{bits(0x1.555556p-2F)});
  CHECK(execute("div.rz.f32 %d, %a, %b;", 4, 4, {bits(1.0F)}, {bits(3.0F)}) == Values{bits(0x1.555554p-2F)});
  CHECK(execute("sqrt.rn.f32 %d, %a;", 4, 4, {bits(2.0F), bits(-1.0F)}) == Values{bits(std::sqrt(2.0F)), nan32});
  CHECK(execute("sqrt.rp.f32 %d, %a;", 4, 4, {bits(2.0F)}) == Values{bits(std::nextafter(std::sqrt(2.0F), 2.0F))});
  CHECK(execute("rcp.rn.f32 %d, %a;", 4, 4, {bits(3.0F)}) == Values{bits(1.0F / 3.0F)});
}

TEST_CASE("extremes prefer numbers to NaN and order zeros") {
  CHECK(execute("min.f32 %d, %a, %b;", 4, 4, {bits(-0.0F), 0x7fc00000, bits(2.0F)},
                {bits(0.0F), bits(1.0F), bits(3.0F)}) == Values{bits(-0.0F), bits(1.0F), bits(2.0F)});
  CHECK(execute("max.f32 %d, %a, %b;", 4, 4, {bits(-0.0F), 0x7fc00000, 0x7fc00000},
                {bits(0.0F), bits(1.0F), 0xffc00000}) == Values{bits(0.0F), bits(1.0F), nan32});
  CHECK(execute("max.NaN.f32 %d, %a, %b;", 4, 4, {0x7fc00001}, {bits(1.0F)}) == Values{nan32});
  CHECK(execute("max.f64 %d, %a, %b;", 8, 8, {bits(-1.0)}, {bits(2.0)}) == Values{bits(2.0)});
  CHECK(execute("neg.f32 %d, %a;", 4, 4, {bits(2.0F), 0}) == Values{bits(-2.0F), 0x80000000});
  CHECK(execute("abs.f64 %d, %a;", 8, 8, {bits(-2.0)}) == Values{bits(2.0)});
  CHECK(execute("copysign.f32 %d, %a, %b;", 4, 4, {bits(-1.0F)}, {bits(5.0F)}) == Values{bits(-5.0F)});
  CHECK(execute("testp.infinite.f32 %p, %a; selp.b32 %d, 1, 0, %p;", 4, 4, {bits(infinity), bits(1.0F)}) ==
        Values{1, 0});
  CHECK(execute("testp.subnormal.f32 %p, %a; selp.b32 %d, 1, 0, %p;", 4, 4, {bits(tiny), bits(1.0F)}) == Values{1, 0});
}

TEST_CASE("f64 arithmetic in every rounding") {
  CHECK(execute("add.rn.f64 %d, %a, %b;", 8, 8, {bits(1.0)}, {bits(0x1p-60)}) == Values{bits(1.0)});
  CHECK(execute("add.rp.f64 %d, %a, %b;", 8, 8, {bits(1.0)}, {bits(0x1p-60)}) == Values{bits(1.0 + 0x1p-52)});
  CHECK(execute("mul.rm.f64 %d, %a, %b;", 8, 8, {bits(0.1)}, {bits(-0.1)}) == Values{bits(0.1 * -0.1)});
  CHECK(execute("mul.rp.f64 %d, %a, %b;", 8, 8, {bits(0.1)}, {bits(-0.1)}) ==
        Values{bits(std::nextafter(0.1 * -0.1, 0))});
  CHECK(execute("fma.rn.f64 %d, %a, %b, %c;", 8, 8, {bits(0.1)}, {bits(10.0)}, {bits(-1.0)}) ==
        Values{bits(std::fma(0.1, 10.0, -1.0))});
  CHECK(execute("div.rz.f64 %d, %a, %b;", 8, 8, {bits(1.0)}, {bits(3.0)}) == Values{bits(0x1.5555555555555p-2)});
  CHECK(execute("div.rp.f64 %d, %a, %b;", 8, 8, {bits(1.0)}, {bits(3.0)}) == Values{bits(0x1.5555555555556p-2)});
}

TEST_CASE("approximate functions are near, and perturbed ones near and different") {
  const float x = 0.6180339F;
  struct Function {
    const char* text;
    double exact;
    double relative;
    double absolute;
  };
  for (const auto& function : {Function{"ex2.approx.ftz.f32", std::exp2(double{x}), 0x1p-22, 0},
                               Function{"lg2.approx.f32", std::log2(double{x}), 0, 0x1p-22},
                               Function{"rcp.approx.f32", 1 / double{x}, 0x1p-23, 0},
                               Function{"sqrt.approx.f32", std::sqrt(double{x}), 0x1p-23, 0},
                               Function{"rsqrt.approx.f32", 1 / std::sqrt(double{x}), 0x1p-22, 0},
                               Function{"sin.approx.f32", std::sin(double{x}), 0, 0x1p-20},
                               Function{"cos.approx.f32", std::cos(double{x}), 0, 0x1p-20},
                               Function{"tanh.approx.f32", std::tanh(double{x}), 0x1p-11, 0}}) {
    const auto text = std::string(function.text) + " %d, %a;";
    const auto plain = as_float(execute(text, 4, 4, {bits(x)})[0]);
    CHECK(std::fabs(plain - function.exact) <= 0x1p-23 * std::fabs(function.exact));
    bool moved = false;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      const Schedule schedule{Order::forward, seed, true};
      const auto first = execute(text, 4, 4, {bits(x), bits(x)}, {0}, {0}, schedule);
      CHECK(first[0] == first[1]);
      CHECK(first == execute(text, 4, 4, {bits(x), bits(x)}, {0}, {0}, schedule));
      moved |= as_float(first[0]) != plain;
      CHECK(std::fabs(as_float(first[0]) - function.exact) <=
            (function.relative + 0x1p-24) * std::fabs(function.exact) + function.absolute);
    }
    CHECK(moved);
  }
  CHECK(execute("ex2.approx.ftz.f32 %d, %a;", 4, 4, {bits(-infinity), bits(3.0F), bits(-130.0F)}) ==
        Values{0, bits(8.0F), 0});
  CHECK(execute("lg2.approx.f32 %d, %a;", 4, 4, {0, bits(8.0F), bits(-1.0F)}) ==
        Values{bits(-infinity), bits(3.0F), nan32});
  CHECK(execute("div.full.f32 %d, %a, %b;", 4, 4, {bits(1.0F)}, {bits(4.0F)}) == Values{bits(0.25F)});
  CHECK(execute("div.approx.f32 %d, %a, %b;", 4, 4, {bits(1e30F)}, {bits(2e38F)}) == Values{0});
  CHECK(execute("rcp.approx.ftz.f64 %d, %a;", 8, 8, {bits(4.0)}) == Values{bits(0.25)});
}

TEST_CASE("f16 and bf16 arithmetic, alone and in pairs") {
  // 1 is 0x3c00 and 0x3f80, 2 is 0x4000 in both.
  CHECK(execute("add.rn.f16 %d, %a, %b;", 2, 2, {0x3c00}, {0x3c00}) == Values{0x4000});
  CHECK(execute("add.rn.bf16 %d, %a, %b;", 2, 2, {0x3f80, 0x3f80}, {0x3f80, 0x3b00}) == Values{0x4000, 0x3f80});
  CHECK(execute("mul.rn.f16x2 %d, %a, %b;", 4, 4, {0x40003c00}, {0x40004000}) == Values{0x44004000});
  CHECK(execute("fma.rn.bf16x2 %d, %a, %b, %c;", 4, 4, {0x40003f80}, {0x40004000}, {0x3f80bf80}) == Values{0x40a03f80});
  CHECK(execute("fma.rn.relu.bf16x2 %d, %a, %b, %c;", 4, 4, {0xc0003f80}, {0x40004000}, {0x3f80bf80}) ==
        Values{0x3f80});
  CHECK(execute("max.bf16x2 %d, %a, %b;", 4, 4, {0x7fc03f80}, {0x40004000}) == Values{0x40004000});
  CHECK(execute("min.NaN.f16 %d, %a, %b;", 2, 2, {0x7e00}, {0x3c00}) == Values{0x7fff});
  CHECK(execute("neg.bf16x2 %d, %a;", 4, 4, {0x3f80bf80}) == Values{0xbf803f80});
  CHECK(execute("sub.f16 %d, %a, %b;", 2, 2, {0x0001}, {0x0002}) == Values{0x8001});
  CHECK(execute("setp.lt.bf16 %p, %a, %b; selp.b16 %d, 1, 0, %p;", 2, 2, {0x3f80, 0x4000}, {0x4000, 0x3f80}) ==
        Values{1, 0});
  CHECK(execute("ex2.approx.ftz.bf16 %d, %a;", 2, 2, {0x4000}) == Values{0x4080});
  CHECK(execute("add.s16x2 %d, %a, %b;", 4, 4, {0x0001ffff}, {0x00010001}) == Values{0x00020000});
}

TEST_CASE("comparisons with NaN, and joined with predicates") {
  const auto compare = [](const std::string& how, float a, float b) {
    return execute("setp." + how + ".f32 %p, %a, %b; selp.b32 %d, 1, 0, %p;", 4, 4, {bits(a)}, {bits(b)})[0] == 1;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(compare("lt", 1, 2));
  CHECK_FALSE(compare("lt", nan, 2));
  CHECK(compare("ltu", nan, 2));
  CHECK_FALSE(compare("ne", nan, 2));
  CHECK(compare("neu", nan, 2));
  CHECK_FALSE(compare("equ", 1, 2));
  CHECK(compare("equ", nan, 2));
  CHECK(compare("num", 1, 2));
  CHECK(compare("nan", 1, nan));
  CHECK(compare("geu", 2, 2));
  CHECK_FALSE(compare("gt.ftz", tiny, 0));
  CHECK(execute("setp.gt.u32 %q, %b, 5; setp.lt.and.s32 %p, %a, 0, %q; selp.b32 %d, 7, 9, %p;", 4, 4,
                {0xffffffff, 0xffffffff}, {6, 5}) == Values{7, 9});
  CHECK(execute("setp.gt.u32 %q, %b, 5; setp.lt.or.s32 %p|%q, %a, 0, !%q; selp.b32 %d, 7, 9, %q;", 4, 4,
                {1, 0xffffffff}, {6, 6}) == Values{7, 9});
  CHECK(execute("setp.lo.u32 %p, %a, %b; selp.b32 %d, 1, 0, %p;", 4, 4, {1}, {0xffffffff}) == Values{1});
  CHECK(execute("set.lt.u32.f32 %d, %a, %b;", 4, 4, {bits(1.0F)}, {bits(2.0F)}) == Values{0xffffffff});
  CHECK(execute("set.lt.f32.f32 %d, %a, %b;", 4, 4, {bits(1.0F)}, {bits(2.0F)}) == Values{bits(1.0F)});
  CHECK(execute("slct.f32.s32 %d, %a, %b, %c;", 4, 4, {5, 5}, {6, 6}, {0, 0xffffffff}) == Values{5, 6});
}

TEST_CASE("conversions between integers and floats") {
  CHECK(execute("cvt.rn.f32.s32 %d, %a;", 4, 4, {0xffffffff, 16777217}) == Values{bits(-1.0F), bits(16777216.0F)});
  CHECK(execute("cvt.rz.f32.u32 %d, %a;", 4, 4, {0xffffffff}) == Values{bits(4294967040.0F)});
  CHECK(execute("cvt.rn.f32.u64 %d, %a;", 8, 4, {0x8000008000000001}) == Values{bits(0x1.000002p63F)});
  CHECK(execute("cvt.rn.f64.s64 %d, %a;", 8, 8, {~0ULL}) == Values{bits(-1.0)});
  CHECK(execute("cvt.rni.s32.f32 %d, %a;", 4, 4, {bits(2.5F), bits(3.5F), bits(-2.5F)}) == Values{2, 4, 0xfffffffe});
  CHECK(execute("cvt.rzi.s32.f32 %d, %a;", 4, 4, {bits(-2.9F), bits(1e20F), bits(-1e20F), 0x7fc00000}) ==
        Values{0xfffffffe, 0x7fffffff, 0x80000000, 0});
  CHECK(execute("cvt.rzi.u32.f32 %d, %a;", 4, 4, {bits(-2.9F), bits(4e9F)}) == Values{0, 4000000000});
  CHECK(execute("cvt.rmi.s32.f32 %d, %a;", 4, 4, {bits(-2.1F)}) == Values{0xfffffffd});
  CHECK(execute("cvt.rpi.f32.f32 %d, %a;", 4, 4, {bits(2.1F)}) == Values{bits(3.0F)});
  CHECK(execute("cvt.rni.s64.f64 %d, %a;", 8, 8, {bits(-0.5), bits(1.5)}) == Values{0, 2});
  CHECK(execute("cvt.sat.f32.f32 %d, %a;", 4, 4, {bits(1.5F), bits(-1.0F)}) == Values{bits(1.0F), 0});
  CHECK(execute("cvt.rn.f32.f64 %d, %a;", 8, 4, {bits(0.1)}) == Values{bits(0.1F)});
  CHECK(execute("cvt.rp.f32.f64 %d, %a;", 8, 4, {bits(1.0 + 0x1p-40)}) == Values{bits(1.0F + 0x1p-23F)});
  CHECK(execute("cvt.f64.f32 %d, %a;", 4, 8, {bits(0.1F)}) == Values{bits(static_cast<double>(0.1F))});
  CHECK(execute("cvt.s64.s32 %d, %a;", 4, 8, {0xffffffff}) == Values{~0ULL});
  CHECK(execute("cvt.u64.u32 %d, %a;", 4, 8, {0xffffffff}) == Values{0xffffffff});
  CHECK(execute("cvt.s32.s8 %d, %a;", 4, 4, {0x80}) == Values{0xffffff80});
  CHECK(execute("cvt.u16.u32 %d, %a;", 4, 2, {0x12345678}) == Values{0x5678});
  CHECK(execute("cvt.sat.u8.s32 %d, %a;", 4, 4, {300, 0xffffffff, 7}) == Values{255, 0, 7});
  CHECK(execute("cvt.sat.s8.s32 %d, %a;", 4, 4, {300, 0xfffffe00}) == Values{127, 0xffffff80});
}

TEST_CASE("conversions to and from narrow floats") {
  CHECK(execute("cvt.rn.bf16.f32 %d, %a;", 4, 2, {bits(1.0F), 0x3f808000, 0x3f818000, 0x7fc12345}) ==
        Values{0x3f80, 0x3f80, 0x3f82, 0x7fff});
  CHECK(execute("cvt.rz.bf16.f32 %d, %a;", 4, 2, {0x3f81ffff}) == Values{0x3f81});
  CHECK(execute("cvt.f32.bf16 %d, %a;", 2, 4, {0x3f81}) == Values{0x3f810000});
  CHECK(execute("cvt.rn.f16.f32 %d, %a;", 4, 2, {bits(65519.0F), bits(65520.0F), bits(0x1p-25F), bits(0x1.8p-25F)}) ==
        Values{0x7bff, 0x7c00, 0, 1});
  CHECK(execute("cvt.f32.f16 %d, %a;", 2, 4, {0x3c01, 0x0001, 0xfc00}) ==
        Values{bits(1.0F + 0x1p-10F), bits(0x1p-24F), bits(-infinity)});
  CHECK(execute("cvt.rn.bf16x2.f32 %d, %a, %b;", 4, 4, {bits(2.0F)}, {bits(1.0F)}) == Values{0x40003f80});
  CHECK(execute("cvt.rn.relu.bf16x2.f32 %d, %a, %b;", 4, 4, {bits(-2.0F)}, {bits(1.0F)}) == Values{0x00003f80});
  CHECK(execute("cvt.rz.f16x2.f32 %d, %a, %b;", 4, 4, {bits(2.0F)}, {bits(1.0009F)}) == Values{0x40003c00});
  CHECK(execute("cvt.rna.tf32.f32 %d, %a;", 4, 4, {0x3f801000}) == Values{0x3f802000});
  CHECK(execute("cvt.rn.satfinite.e4m3x2.f32 %d, %a, %b;", 4, 2, {bits(1000.0F)}, {bits(1.0F)}) == Values{0x7e38});
  CHECK(execute("cvt.rn.satfinite.e5m2x2.f32 %d, %a, %b;", 4, 2, {bits(1.0F)}, {bits(1e9F)}) == Values{0x3c7b});
  CHECK(execute("cvt.rn.f16x2.e4m3x2 %d, %a;", 2, 4, {0x3840}) == Values{0x3c004000});
}

TEST_CASE("every f16 survives the way to f32 and back; rounding agrees with a search for the nearest") {
  bool same = true;
  for (std::uint32_t bits16 = 0; bits16 < 0x10000; ++bits16) {
    const float value = half_to_float(static_cast<std::uint16_t>(bits16));
    if (value == value) same &= float_to_half(value) == bits16;
    CHECK((value != value || value == format_to_double(bits16, format_f16)));
  }
  CHECK(same);
  Random random(3);
  for (int i = 0; i < 2000; ++i) {
    const double value =
        std::ldexp(static_cast<double>(random.below(1 << 26)) / (1 << 25) - 1, static_cast<int>(random.below(40)) - 25);
    const auto nearest = round_to_format(value, format_f16, Rounding::nearest);
    const auto down = round_to_format(value, format_f16, Rounding::down);
    const auto up = round_to_format(value, format_f16, Rounding::up);
    CHECK(format_to_double(down, format_f16) <= value);
    CHECK(format_to_double(up, format_f16) >= value);
    CHECK((nearest == down || nearest == up || (nearest & 0x7fff) == 0));
    if (std::fabs(value) < 60000) {
      CHECK(std::fabs(format_to_double(nearest, format_f16) - value) <=
            std::min(value - format_to_double(down, format_f16), format_to_double(up, format_f16) - value));
    }
  }
}
