// The counters against numbers worked out by hand, and equal under every schedule; the speed, when it is asked for.
#include <cstdio>

#include "kernels.hpp"

using namespace emulator_test;
using tigon::emulator::SpecialFunction;

namespace {

std::string access_kernel(const std::string& body) {
  return R"(.version 9.0
.target sm_90a
.address_size 64
.visible .entry test(.param .u64 base)
{
  .reg .b64 %rd<8>;
  .reg .b32 %r<16>;
  .shared .align 16 .b8 tile[4096];
  ld.param.u64 %rd1, [base];
  mov.u32 %r1, %tid.x;
  cvt.u64.u32 %rd2, %r1;
  mov.u32 %r2, tile;
)" + body +
         "\n  ret;\n}\n";
}

tigon::emulator::Counters count(const std::string& body, std::uint32_t threads = 32) {
  Runner runner(access_kernel(body));
  const auto buffer = runner.put(std::vector<std::uint32_t>(4096, 1));
  const bool clean = runner.run("test", {1, threads}, buffer);
  INFO(runner.reports());
  CHECK(clean);
  return runner.machine.counters;
}

}  // namespace

TEST_CASE("sectors of global memory") {
  auto counters = count("mad.lo.u64 %rd3, %rd2, 4, %rd1; ld.global.u32 %r3, [%rd3];");
  CHECK(counters.global_requests == 1);
  CHECK(counters.global_sectors == 4);
  CHECK(counters.global_ideal_sectors == 4);
  CHECK(counters.global_loaded[2] == 128);

  counters = count("mad.lo.u64 %rd3, %rd2, 16, %rd1; ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%rd3];");
  CHECK(counters.global_sectors == 16);
  CHECK(counters.global_ideal_sectors == 16);
  CHECK(counters.global_loaded[4] == 512);
  CHECK(counters.wide_share() == 1);

  // Off by four bytes: one sector more.
  counters = count("mad.lo.u64 %rd3, %rd2, 4, %rd1; ld.global.u32 %r3, [%rd3+4];");
  CHECK(counters.global_sectors == 5);
  CHECK(counters.global_ideal_sectors == 4);

  // Every second word: four to a sector.
  counters = count("mad.lo.u64 %rd3, %rd2, 8, %rd1; ld.global.u32 %r3, [%rd3];");
  CHECK(counters.global_sectors == 8);
  CHECK(counters.global_ideal_sectors == 4);

  // A stride of 64 bytes: a sector for every lane.
  counters = count("mad.lo.u64 %rd3, %rd2, 64, %rd1; ld.global.u32 %r3, [%rd3];");
  CHECK(counters.global_sectors == 32);
  CHECK(counters.global_ideal_sectors == 4);
  CHECK(counters.wide_share() == 0);

  // All lanes the same word.
  counters = count("ld.global.u32 %r3, [%rd1];");
  CHECK(counters.global_sectors == 1);
  CHECK(counters.global_ideal_sectors == 1);

  // Two halves of each sector, one after the other, and then a store to it.
  counters = count(
      "mad.lo.u64 %rd3, %rd2, 32, %rd1; ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%rd3];\n"
      "ld.global.v4.u32 {%r3, %r4, %r5, %r6}, [%rd3+16]; st.global.u32 [%rd3], %r3;");
  CHECK(counters.global_sectors == 3 * 32);
  CHECK(counters.global_new_sectors == 2 * 32);
}

TEST_CASE("bank conflicts of shared memory") {
  const auto store = [](const std::string& address, const std::string& access) {
    return count(address + " " + access);
  };
  auto counters = store("mad.lo.u32 %r3, %r1, 4, %r2;", "st.shared.u32 [%r3], %r1;");
  CHECK(counters.shared_wavefronts == 1);
  CHECK(counters.shared_ideal_wavefronts == 1);
  CHECK(counters.shared_stored[2] == 128);
  counters = store("mad.lo.u32 %r3, %r1, 8, %r2;", "st.shared.u32 [%r3], %r1;");
  CHECK(counters.shared_wavefronts == 2);
  counters = store("mad.lo.u32 %r3, %r1, 128, %r2;", "st.shared.u32 [%r3], %r1;");
  CHECK(counters.shared_wavefronts == 32);
  counters = store("mad.lo.u32 %r3, %r1, 16, %r2;", "st.shared.v4.u32 [%r3], {%r1, %r1, %r1, %r1};");
  CHECK(counters.shared_wavefronts == 4);
  CHECK(counters.shared_ideal_wavefronts == 4);
  counters = store("mad.lo.u32 %r3, %r1, 4, %r2; st.shared.u32 [%r3], %r1; bar.sync 0;", "ld.shared.u32 %r4, [%r2];");
  CHECK(counters.shared_wavefronts == 2);
  CHECK(counters.barriers == 1);
}

TEST_CASE("instructions, lanes and special functions") {
  const auto counters = count(
      ".reg .f32 %f<4>; .reg .pred %p; cvt.rn.f32.u32 %f1, %r1; ex2.approx.ftz.f32 %f2, %f1; setp.lt.u32 %p, %r1, 8;\n"
      "@%p lg2.approx.f32 %f3, %f2; @%p rcp.approx.f32 %f3, %f2; sqrt.approx.f32 %f3, %f1; sqrt.rn.f32 %f3, %f1;");
  const auto special = [&](SpecialFunction function) {
    return counters.special_functions[static_cast<std::size_t>(function)];
  };
  CHECK(special(SpecialFunction::ex2) == 32);
  CHECK(special(SpecialFunction::lg2) == 8);
  CHECK(special(SpecialFunction::rcp) == 8);
  CHECK(special(SpecialFunction::sqrt) == 32);
  CHECK(special(SpecialFunction::rsqrt) == 0);
  CHECK(counters.warp_instructions == 12);
  CHECK(counters.lane_instructions == 12 * 32 - 2 * 24);
  CHECK(counters.opcodes.at("ex2.approx.ftz.f32") == 1);
}

TEST_CASE("lanes that took different branches run together again where they meet") {
  const auto counters = count(
      ".reg .pred %p; setp.lt.u32 %p, %r1, 16; @%p bra MEET; add.u32 %r3, %r1, 1;\n"
      "MEET: add.u32 %r4, %r1, 1; add.u32 %r5, %r1, 1; add.u32 %r6, %r1, 1;");
  // Four instructions of the frame, three before the lanes meet, three after, and the return: each once.
  CHECK(counters.warp_instructions == 4 + 3 + 3 + 1);
  CHECK(counters.lane_instructions == (4 + 3 + 3 + 1) * 32 - 16 - 16);
}

TEST_CASE("counters are the same under every schedule") {
  const auto rows = read_fixture("rows_sm_90a.ptx");
  const auto tile = read_fixture("tile_sm_90a.ptx");
  const auto first_rows = run_scale_rows(rows, {}).counters;
  const auto first_tile = run_multiply_tiles(tile, {}).counters;
  for (const auto schedule : all_schedules()) {
    const auto again = run_scale_rows(rows, schedule).counters;
    CHECK(again.global_sectors == first_rows.global_sectors);
    CHECK(again.shared_wavefronts == first_rows.shared_wavefronts);
    CHECK(again.warp_instructions == first_rows.warp_instructions);
    CHECK(again.opcodes == first_rows.opcodes);
    CHECK(run_multiply_tiles(tile, schedule).counters.shared_wavefronts == first_tile.shared_wavefronts);
  }
  CHECK(first_rows.lines.count(27) == 1);
}

TEST_CASE("what a row kernel moves is what its algorithm says") {
  // Rows are read twice, the weights once a row; both and the result by 16-byte accesses.
  const auto counters = run_scale_rows(read_fixture("rows_sm_90a.ptx"), {}, 8, 256, 512).counters;
  CHECK(counters.global_loaded[4] == 8 * 512 * 16 * 3);
  CHECK(counters.global_stored[4] == 8 * 512 * 16);
  CHECK(counters.global_sectors == 8 * 512 * 16 * 4 / 32 + 8);
  // Past caches that hold everything: rows and weights read once, results written once, and the scales of all rows.
  CHECK(counters.global_new_sectors == (8 + 1 + 8) * 512 * 16 / 32 + 1);
  CHECK(counters.wide_share() > 0.99);
}

TEST_CASE("padding a tile removes the conflicts of loading its matrices") {
  const auto padded = run_multiply_tiles(read_fixture("tile_sm_90a.ptx"), {}, 128, 128, 256).counters;
  const auto unpadded = run_multiply_tiles(read_fixture("tile_unpadded.ptx"), {}, 128, 128, 256).counters;
  CHECK(padded.shared_ideal_wavefronts == unpadded.shared_ideal_wavefronts);
  // 4 blocks x 8 steps x 4 warps, each with 10 loads of four matrices and 4 copies of 16 bytes per lane.
  constexpr std::uint64_t warps = 4 * 8 * 4;
  CHECK(padded.shared_ideal_wavefronts == warps * (10 * 4 + 4 * 4));
  CHECK(padded.shared_wavefronts == warps * (10 * 4 + 4 * 4 * 2));
  CHECK(unpadded.shared_wavefronts == warps * (10 * 4 * 4 + 4 * 4));
}

TEST_CASE("speed, for people", "[.speed]") {
  const auto rows = read_fixture("rows_sm_90a.ptx");
  const auto tile = read_fixture("tile_sm_90a.ptx");
  const auto show = [](const char* name, const auto& run) {
    Outcome best = run();
    for (int i = 0; i < 4; ++i) {
      if (auto next = run(); next.seconds < best.seconds) best = std::move(next);
    }
    const auto millions = static_cast<double>(best.counters.lane_instructions) / 1e6;
    std::printf("%-28s %8.4f s %8.2f M lane-instructions %8.1f M/s\n", name, best.seconds, millions,
                millions / best.seconds);
  };
  show("scale_rows 64 x 4096", [&] { return run_scale_rows(rows, {}, 64, 256, 512); });
  show("exp_rows 16 x 32003", [&] { return run_exp_rows(rows, {}, 16, 32003); });
  show("multiply_tiles 256 x 128 x 256", [&] { return run_multiply_tiles(tile, {}, 256, 128, 256); });
}
