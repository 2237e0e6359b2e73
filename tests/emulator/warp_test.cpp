// Warp-wide instructions, control flow, memory moves and barriers with votes: what they compute.
#include <numeric>

#include "small_kernel.hpp"

using namespace emulator_test;

namespace {

// The word that each of the threads stores: %r31.
std::vector<std::uint32_t> each(const std::string& body, std::uint32_t threads = 32) {
  auto words = words_of(body + "\n" + word_address("%r1") + " st.global.u32 [%rd2], %r31;", {1, threads});
  words.resize(threads);
  return words;
}
template <class Function>
std::vector<std::uint32_t> lanes(Function function, std::uint32_t threads = 32) {
  std::vector<std::uint32_t> values(threads);
  for (std::uint32_t lane = 0; lane < threads; ++lane) values[lane] = static_cast<std::uint32_t>(function(lane));
  return values;
}

}  // namespace

TEST_CASE("shuffles in all modes and in segments") {
  CHECK(each("shfl.sync.bfly.b32 %r31, %r1, 5, 31, -1;") == lanes([](auto l) { return l ^ 5; }));
  CHECK(each("shfl.sync.up.b32 %r31, %r1, 3, 0, -1;") == lanes([](auto l) { return l < 3 ? l : l - 3; }));
  CHECK(each("shfl.sync.down.b32 %r31, %r1, 3, 31, -1;") == lanes([](auto l) { return l > 28 ? l : l + 3; }));
  CHECK(each("shfl.sync.idx.b32 %r31, %r1, 9, 31, -1;") == lanes([](auto) { return 9; }));
  // Segments of eight: the mask of the segment is 24, in bits 8 to 12.
  CHECK(each("shfl.sync.idx.b32 %r31, %r1, 1, 6175, -1;") == lanes([](auto l) { return (l & 24) | 1; }));
  CHECK(each("shfl.sync.down.b32 %r31, %r1, 6, 6175, -1;") == lanes([](auto l) { return (l & 7) < 2 ? l + 6 : l; }));
  CHECK(each("shfl.sync.up.b32 %r31|%p1, %r1, 3, 0, -1; selp.u32 %r31, 1, 0, %p1;") ==
        lanes([](auto l) { return l >= 3; }));
}

TEST_CASE("votes, matches, reductions, the active lanes and the elected one") {
  const std::string odd = "and.b32 %r5, %r1, 1; setp.eq.u32 %p1, %r5, 1; ";
  CHECK(each(odd + "vote.sync.ballot.b32 %r31, %p1, -1;") == lanes([](auto) { return 0xaaaaaaaa; }));
  CHECK(each(odd + "vote.sync.ballot.b32 %r31, !%p1, -1;") == lanes([](auto) { return 0x55555555; }));
  CHECK(each(odd + "vote.sync.any.pred %p2, %p1, -1; selp.u32 %r31, 1, 0, %p2;") == lanes([](auto) { return 1; }));
  CHECK(each(odd + "vote.sync.all.pred %p2, %p1, -1; selp.u32 %r31, 1, 0, %p2;") == lanes([](auto) { return 0; }));
  CHECK(each(odd + "vote.sync.uni.pred %p2, %p1, -1; selp.u32 %r31, 1, 0, %p2;") == lanes([](auto) { return 0; }));
  // Two halves with masks of their own.
  CHECK(each("setp.lt.u32 %p1, %r1, 16; selp.u32 %r6, 65535, -65536, %p1; vote.sync.all.pred %p2, %p1, %r6; "
             "selp.u32 %r31, 1, 0, %p2;") == lanes([](auto l) { return l < 16; }));
  CHECK(each("shr.u32 %r5, %r1, 2; match.any.sync.b32 %r31, %r5, -1;") ==
        lanes([](auto l) { return 15U << (l & ~3U); }));
  CHECK(each("match.all.sync.b32 %r31|%p1, %r1, -1;") == lanes([](auto) { return 0; }));
  CHECK(each("redux.sync.add.s32 %r31, %r1, -1;") == lanes([](auto) { return 496; }));
  CHECK(each("sub.s32 %r5, %r1, 9; redux.sync.min.s32 %r31, %r5, -1;") == lanes([](auto) { return -9; }));
  CHECK(each("redux.sync.xor.b32 %r31, %r1, -1;") == lanes([](auto) { return 0; }));
  CHECK(each("setp.lt.u32 %p1, %r1, 5; mov.u32 %r31, 0; @%p1 activemask.b32 %r31;") ==
        lanes([](auto l) { return l < 5 ? 31 : 0; }));
  CHECK(each("elect.sync %r5|%p1, -1; selp.u32 %r31, 100, %r5, %p1;") ==
        lanes([](auto l) { return l == 0 ? 100 : 0; }));
}

TEST_CASE("special registers") {
  CHECK(each("mov.u32 %r31, %laneid;", 64) == lanes([](auto l) { return l % 32; }, 64));
  CHECK(each("mov.u32 %r31, %warpid;", 64) == lanes([](auto l) { return l / 32; }, 64));
  CHECK(each("mov.u32 %r31, %ntid.x;", 40) == lanes([](auto) { return 40; }, 40));
  CHECK(each("mov.u32 %r31, %lanemask_lt;") == lanes([](auto l) { return (1ULL << l) - 1; }));
  CHECK(each("mov.u32 %r31, %nsmid;") == lanes([](auto) { return 132; }));
}

TEST_CASE("branch tables, loops and guards") {
  CHECK(each("and.b32 %r5, %r1, 3; TABLE: .branchtargets L0, L1, L2, L3; brx.idx %r5, TABLE;\n"
             "L0: mov.u32 %r31, 10; bra END;\nL1: mov.u32 %r31, 11; bra END;\nL2: mov.u32 %r31, 12; bra END;\n"
             "L3: mov.u32 %r31, 13;\nEND:") == lanes([](auto l) { return 10 + l % 4; }));
  CHECK(
      each("mov.u32 %r31, 0; mov.u32 %r5, %r1;\nLOOP: setp.eq.u32 %p1, %r5, 0; @%p1 bra END; add.u32 %r31, %r31, %r5; "
           "sub.u32 %r5, %r5, 1; bra.uni LOOP;\nEND:") == lanes([](auto l) { return l * (l + 1) / 2; }));
  CHECK(each("setp.gt.u32 %p1, %r1, 9; mov.u32 %r31, 1; @%p1 mov.u32 %r31, 2; @!%p1 add.u32 %r31, %r31, 4;") ==
        lanes([](auto l) { return l > 9 ? 2 : 5; }));
}

TEST_CASE("moves pack and unpack") {
  CHECK(each("mov.b64 %rd3, {%r1, 7}; mov.b64 {%r5, %r31}, %rd3;") == lanes([](auto) { return 7; }));
  CHECK(each("mov.b32 {%h1, %h2}, 0x00050003; mov.b32 %r31, {%h2, %h1};") == lanes([](auto) { return 0x00030005; }));
  CHECK(each("mov.b64 %rd3, {%r1, %r1}; mov.b64 {%r31, _}, %rd3;") == lanes([](auto l) { return l; }));
}

TEST_CASE("loads and stores of every width, through generic addresses, local memory and constants") {
  CHECK(each("mad.lo.u32 %r5, %r1, 4, %r3; st.shared.u32 [%r5], 0xfffefdfc; ld.shared.s8 %r31, [%r5+1];") ==
        lanes([](auto) { return -3; }));
  CHECK(each("mad.lo.u32 %r5, %r1, 4, %r3; st.shared.u32 [%r5], 0xfffefdfc; ld.shared.u8 %r31, [%r5+1];") ==
        lanes([](auto) { return 0xfd; }));
  CHECK(each("mad.lo.u32 %r5, %r1, 4, %r3; st.shared.u32 [%r5], 0xfffefdfc; ld.shared.s16 %r31, [%r5+2];") ==
        lanes([](auto) { return -2; }));
  CHECK(
      each("mad.lo.u32 %r5, %r1, 4, %r3; st.shared.u32 [%r5], %r1; cvt.u64.u32 %rd3, %r5; cvta.shared.u64 %rd3, %rd3; "
           "ld.u32 %r31, [%rd3];") == lanes([](auto l) { return l; }));
  CHECK(each(".local .align 8 .b8 array[64]; mov.u64 %rd3, array; st.local.v2.u32 [%rd3+8], {%r1, 9}; cvta.local.u64 "
             "%rd4, "
             "%rd3; ld.v2.u32 {%r5, %r6}, [%rd4+8]; add.u32 %r31, %r5, %r6;") == lanes([](auto l) { return l + 9; }));
  CHECK(each("mad.lo.u32 %r5, %r1, 8, %r3; st.shared.v2.u16 [%r5], {1, 2}; ld.shared.u32 %r31, [%r5];") ==
        lanes([](auto) { return 0x00020001; }));
}

TEST_CASE("atomics return what was there before") {
  CHECK(
      each(
          "setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [%r3], 5; bar.sync 0; mov.u32 %r31, 0; setp.eq.u32 %p2, %r1, 3; "
          "@%p2 atom.shared.add.u32 %r31, [%r3], 10; bar.sync 0; ld.shared.u32 %r5, [%r3]; add.u32 %r31, %r31, %r5;") ==
      lanes([](auto l) { return l == 3 ? 20 : 15; }));
  const auto one = [](const std::string& operation, std::uint32_t before) {
    const auto text =
        fmt::format("mad.lo.u32 %r5, %r1, 4, %r3; st.shared.u32 [%r5], {}; atom.shared.{}; ld.shared.u32 %r31, [%r5];",
                    before, operation);
    return each(text)[0];
  };
  CHECK(one("exch.b32 %r6, [%r5], 9", 5) == 9);
  CHECK(one("cas.b32 %r6, [%r5], 5, 8", 5) == 8);
  CHECK(one("cas.b32 %r6, [%r5], 4, 8", 5) == 5);
  CHECK(one("min.s32 %r6, [%r5], -1", 5) == 0xffffffff);
  CHECK(one("max.u32 %r6, [%r5], 7", 5) == 7);
  CHECK(one("and.b32 %r6, [%r5], 4", 5) == 4);
  CHECK(one("or.b32 %r6, [%r5], 2", 5) == 7);
  CHECK(one("xor.b32 %r6, [%r5], 1", 5) == 4);
  CHECK(one("inc.u32 %r6, [%r5], 5", 5) == 0);
  CHECK(one("dec.u32 %r6, [%r5], 9", 0) == 9);
  CHECK(one("add.f32 %f1, [%r5], 0f3F800000", 0x3f800000) == 0x40000000);
  CHECK(one("add.noftz.bf16x2 %r6, [%r5], 0x3f803f80", 0x3f800000) == 0x40003f80);
}

TEST_CASE("barriers that count votes") {
  CHECK(each("setp.lt.u32 %p1, %r1, 40; bar.red.popc.u32 %r31, 0, %p1;", 64) == lanes([](auto) { return 40; }, 64));
  CHECK(each("setp.lt.u32 %p1, %r1, 40; bar.red.and.pred %p2, 0, %p1; selp.u32 %r31, 1, 0, %p2;", 64) ==
        lanes([](auto) { return 0; }, 64));
  CHECK(each("setp.lt.u32 %p1, %r1, 40; barrier.cta.red.or.aligned.pred %p2, 0, %p1; selp.u32 %r31, 1, 0, %p2;", 64) ==
        lanes([](auto) { return 1; }, 64));
}

TEST_CASE("asynchronous copies move bytes, and zeros behind a short source") {
  const auto text =
      "add.u32 %r9, %r1, 1;" + word_address("%r1") +
      "st.global.u32 [%rd2+2048], %r9; bar.warp.sync -1;"
      "mad.lo.u32 %r5, %r1, 4, %r3; cp.async.ca.shared.global [%r5], [%rd2+2048], 4; cp.async.commit_group; "
      "cp.async.wait_group 0; ld.shared.u32 %r31, [%r5];";
  CHECK(each(text) == lanes([](auto l) { return l + 1; }));
  const auto short_source =
      "mov.u32 %r9, 0x11111111;" + word_address("%r1") +
      "st.global.u32 [%rd2+2048], %r9;"
      "mad.lo.u32 %r5, %r1, 4, %r3; setp.lt.u32 %p1, %r1, 16; selp.u32 %r6, 2, 0, %p1; "
      "cp.async.ca.shared.global [%r5], [%rd2+2048], 4, %r6; cp.async.wait_all; ld.shared.u32 %r31, [%r5];";
  CHECK(each(short_source) == lanes([](auto l) { return l < 16 ? 0x1111 : 0; }));
}
