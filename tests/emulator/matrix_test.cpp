// Matrix fragments against plain loops over whole matrices: mma in every known shape, ldmatrix, stmatrix, movmatrix.
#include "kernels.hpp"
#include "runtime/emulator/half.hpp"

using namespace emulator_test;
using namespace tigon::emulator;

namespace {

// One warp: loads `a` (registers of A per lane), b and c from rows of words, executes, stores d.
std::string mma_kernel(const std::string& operation, unsigned a, unsigned b, unsigned c) {
  const auto list = [](char name, unsigned count) {
    std::string text = "{";
    for (unsigned i = 0; i < count; ++i) text += fmt::format("{}%{}{}", i == 0 ? "" : ", ", name, i);
    return text + "}";
  };
  std::string text =
      ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry test(.param .u64 a, .param .u64 b, .param .u64 "
      "c, "
      ".param .u64 d)\n{\n.reg .b32 %lane, %a<8>, %b<4>, %c<4>, %d<4>;\n.reg .b64 %p, %o;\nmov.u32 %lane, %tid.x;\n"
      "mul.wide.u32 %o, %lane, 4;\n";
  const auto move = [&](const char* what, const char* parameter, unsigned count, bool store) {
    text += fmt::format("ld.param.u64 %p, [{}];\nadd.u64 %p, %p, %o;\n", parameter);
    for (unsigned i = 0; i < count; ++i) {
      text += store ? fmt::format("st.global.u32 [%p+{}], %{}{};\n", i * 128, what, i)
                    : fmt::format("ld.global.u32 %{}{}, [%p+{}];\n", what, i, i * 128);
    }
  };
  move("a", "a", a, false);
  move("b", "b", b, false);
  move("c", "c", c, false);
  text += fmt::format("mma.sync.aligned.{} {}, {}, {}, {};\n", operation, list('d', c), list('a', a), list('b', b),
                      list('c', c));
  move("d", "d", c, true);
  return text + "ret;\n}\n";
}

struct Shape {
  std::string operation;
  unsigned k;
  unsigned bits;  // of an element of A and B
  std::function<double(std::uint32_t)> decode;
  bool half_sum = false;
  bool integer = false;
};

double signed_byte(std::uint32_t bits8) { return static_cast<std::int8_t>(bits8); }

}  // namespace

TEST_CASE("mma agrees with plain loops in every known shape") {
  const auto bf16 = [](std::uint32_t v) { return double{bf16_to_float(static_cast<std::uint16_t>(v))}; };
  const auto f16 = [](std::uint32_t v) { return double{half_to_float(static_cast<std::uint16_t>(v))}; };
  const auto tf32 = [](std::uint32_t v) { return double{std::bit_cast<float>(v & 0xffffe000)}; };
  const auto e4m3 = [](std::uint32_t v) { return format_to_double(v, format_e4m3); };
  for (const auto& shape :
       {Shape{"m16n8k16.row.col.f32.bf16.bf16.f32", 16, 16, bf16},
        Shape{"m16n8k8.row.col.f32.bf16.bf16.f32", 8, 16, bf16}, Shape{"m16n8k16.row.col.f32.f16.f16.f32", 16, 16, f16},
        Shape{"m16n8k16.row.col.f16.f16.f16.f16", 16, 16, f16, true},
        Shape{"m16n8k8.row.col.f32.tf32.tf32.f32", 8, 32, tf32},
        Shape{"m16n8k4.row.col.f32.tf32.tf32.f32", 4, 32, tf32},
        Shape{"m16n8k32.row.col.f32.e4m3.e4m3.f32", 32, 8, e4m3},
        Shape{"m16n8k32.row.col.s32.s8.s8.s32", 32, 8, signed_byte, false, true}}) {
    const unsigned per_word = 32 / shape.bits;
    const unsigned words = shape.k / (4 * per_word);
    // Small integers, exact in every format; bits are made by encoding them.
    const auto encode = [&](int value) -> std::uint32_t {
      if (shape.integer) return static_cast<std::uint8_t>(value);
      if (shape.bits == 32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
      if (shape.bits == 8) return round_to_format(value, format_e4m3, Rounding::nearest);
      return round_to_format(value, shape.operation.find("bf16") != std::string::npos ? format_bf16 : format_f16,
                             Rounding::nearest);
    };
    Random random(11);
    std::vector<std::vector<std::uint32_t>> a(16, std::vector<std::uint32_t>(shape.k));
    std::vector<std::vector<std::uint32_t>> b(shape.k, std::vector<std::uint32_t>(8));
    std::vector<std::vector<int>> c(16, std::vector<int>(8));
    for (auto& row : a) {
      for (auto& value : row) value = encode(static_cast<int>(random.below(9)) - 4);
    }
    for (auto& row : b) {
      for (auto& value : row) value = encode(static_cast<int>(random.below(9)) - 4);
    }
    for (auto& row : c) {
      for (auto& value : row) value = static_cast<int>(random.below(9)) - 4;
    }
    // The fragments' layout as the PTX manual draws it.
    const auto word_of = [&](const std::function<std::uint32_t(unsigned)>& element) {
      std::uint32_t word = 0;
      for (unsigned i = 0; i < per_word; ++i) word |= element(i) << (i * shape.bits);
      return word;
    };
    const unsigned sums = shape.half_sum ? 2 : 4;
    std::vector<std::uint32_t> a_words(2 * words * 32);
    std::vector<std::uint32_t> b_words(words * 32);
    std::vector<std::uint32_t> c_words(sums * 32);
    for (unsigned lane = 0; lane < 32; ++lane) {
      const unsigned group = lane / 4;
      const unsigned in_group = lane % 4;
      for (unsigned r = 0; r < 2 * words; ++r) {
        a_words[r * 32 + lane] = word_of([&](unsigned i) {
          return a[group + (r % 2 == 0 ? 0 : 8)][in_group * per_word + i + (r < 2 ? 0 : shape.k / 2)];
        });
      }
      for (unsigned r = 0; r < words; ++r) {
        b_words[r * 32 + lane] =
            word_of([&](unsigned i) { return b[in_group * per_word + i + r * shape.k / words][group]; });
      }
      for (unsigned i = 0; i < 4; ++i) {
        const int value = c[group + (i < 2 ? 0 : 8)][in_group * 2 + i % 2];
        if (shape.half_sum) {
          c_words[i / 2 * 32 + lane] |= std::uint32_t{float_to_half(static_cast<float>(value))} << (16 * (i % 2));
        } else {
          c_words[i * 32 + lane] = shape.integer ? static_cast<std::uint32_t>(value)
                                                 : std::bit_cast<std::uint32_t>(static_cast<float>(value));
        }
      }
    }
    for (const bool perturb : {false, true}) {
      Runner runner(mma_kernel(shape.operation, 2 * words, words, sums));
      runner.machine.schedule.perturb = perturb;
      const auto d = runner.make<std::uint32_t>(sums * 32);
      REQUIRE(runner.run("test", {1, 32}, runner.put(a_words), runner.put(b_words), runner.put(c_words), d));
      const auto got = runner.get<std::uint32_t>(d, sums * 32);
      bool same = true;
      for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned i = 0; i < 4; ++i) {
          const unsigned row = lane / 4 + (i < 2 ? 0 : 8);
          const unsigned column = lane % 4 * 2 + i % 2;
          double wanted = c[row][column];
          for (unsigned k = 0; k < shape.k; ++k) wanted += shape.decode(a[row][k]) * shape.decode(b[k][column]);
          double value = 0;
          if (shape.half_sum) {
            value = half_to_float(static_cast<std::uint16_t>(got[i / 2 * 32 + lane] >> (16 * (i % 2))));
          } else if (shape.integer) {
            value = static_cast<std::int32_t>(got[i * 32 + lane]);
          } else {
            value = std::bit_cast<float>(got[i * 32 + lane]);
          }
          same &= value == wanted;
        }
      }
      INFO(shape.operation);
      CHECK(same);
    }
  }
}

TEST_CASE("perturbed sums of mma differ in their last places only") {
  const auto tile = read_fixture("tile_sm_90a.ptx");
  const auto plain = run_multiply_tiles(tile, {});
  bool moved = false;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const auto outcome = run_multiply_tiles(tile, {Order::forward, seed, true});
    CHECK(outcome.clean);
    CHECK(outcome.error < 1e-4);
    moved |= outcome.bits != plain.bits;
  }
  CHECK(moved);
}

TEST_CASE("matrices are loaded, stored and transposed as the manual draws them") {
  // Shared memory holds 16-bit numbers 0 … 255 in rows of eight; lane l's matrix row is row l.
  const auto run = [](const std::string& body) {
    const auto text = R"(.version 9.0
.target sm_90a
.address_size 64
.visible .entry test(.param .u64 out)
{
  .reg .b32 %r<16>;
  .reg .b64 %rd<4>;
  .shared .align 16 .b8 tile[512];
  .shared .align 16 .b8 other[512];
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, tile;
  mov.u32 %r3, other;
  mul.lo.u32 %r4, %r1, 16;
  add.u32 %r2, %r2, %r4;
  add.u32 %r3, %r3, %r4;
  mul.lo.u32 %r5, %r1, 0x00080008;
  add.u32 %r5, %r5, 0x00010000;
  add.u32 %r6, %r5, 0x00020002;
  add.u32 %r7, %r5, 0x00040004;
  add.u32 %r8, %r5, 0x00060006;
  st.shared.v4.u32 [%r2], {%r5, %r6, %r7, %r8};
  bar.warp.sync -1;
)" + body + R"(
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd2, %rd1, %rd2;
  st.global.u32 [%rd2], %r9;
  ret;
}
)";
    Runner runner(text);
    const auto out = runner.make<std::uint32_t>(32);
    const bool clean = runner.run("test", {1, 32}, out);
    INFO(runner.reports());
    REQUIRE(clean);
    return runner.get<std::uint32_t>(out, 32);
  };
  const auto pair = [](std::uint32_t low, std::uint32_t high) { return low | high << 16; };
  const auto plain = run("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r9, %r10, %r11, %r12}, [%r2];");
  const auto third = run("ldmatrix.sync.aligned.m8n8.x4.shared::cta.b16 {%r10, %r11, %r9, %r12}, [%r2];");
  const auto turned = run("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r10, %r9}, [%r2];");
  const auto moved =
      run("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r2]; movmatrix.sync.aligned.m8n8.trans.b16 %r9, %r10;");
  const auto stored =
      run("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r3], {%r1}; bar.warp.sync -1; mov.u32 %r9, 0;\n"
          ".reg .pred %p; setp.lt.u32 %p, %r1, 8; @%p ld.shared.u32 %r9, [%r3+4];");
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    const auto row = lane / 4;
    const auto column = lane % 4 * 2;
    CHECK(plain[lane] == pair(row * 8 + column, row * 8 + column + 1));
    CHECK(third[lane] == pair(128 + row * 8 + column, 128 + row * 8 + column + 1));
    CHECK(turned[lane] == pair(64 + column * 8 + row, 64 + (column + 1) * 8 + row));
    CHECK(moved[lane] == pair(column * 8 + row, (column + 1) * 8 + row));
    // Element (m, n) of the stored matrix is the n-th row's m-th of the fragment: lane n * 4 + m / 2, half m % 2.
    const auto element = [&](std::uint32_t m, std::uint32_t n) { return m % 2 == 0 ? n * 4 + m / 2 : 0; };
    CHECK(stored[lane] == (lane < 8 ? pair(element(lane, 2), element(lane, 3)) : 0));
  }
}
