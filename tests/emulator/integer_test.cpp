// Integer arithmetic and bits, instruction by instruction, against values worked out by hand.
#include "run_kernel.hpp"

using namespace emulator_test;
using Values = std::vector<std::uint64_t>;

TEST_CASE("integer sums and products wrap and widen") {
  CHECK(execute("add.s32 %d, %a, %b;", 4, 4, {1, 0xffffffff, 0x7fffffff}, {2, 1, 1}) == Values{3, 0, 0x80000000});
  CHECK(execute("sub.u64 %d, %a, %b;", 8, 8, {5, 0}, {7, 1}) == Values{~1ULL, ~0ULL});
  CHECK(execute("add.u16 %d, %a, %b;", 2, 2, {0xffff, 3}, {2, 4}) == Values{1, 7});
  CHECK(execute("add.sat.s32 %d, %a, %b;", 4, 4, {0x7fffffff, 0x80000000}, {1, 0xffffffff}) ==
        Values{0x7fffffff, 0x80000000});
  CHECK(execute("mul.lo.s32 %d, %a, %b;", 4, 4, {0x10001, 7}, {0x10001, 0xffffffff}) == Values{0x20001, 0xfffffff9});
  CHECK(execute("mul.hi.u32 %d, %a, %b;", 4, 4, {0x80000000}, {6}) == Values{3});
  CHECK(execute("mul.hi.s32 %d, %a, %b;", 4, 4, {0x80000000}, {6}) == Values{0xfffffffd});
  CHECK(execute("mul.wide.s32 %d, %a, %b;", 4, 8, {0xffffffff}, {5}) == Values{~4ULL});
  CHECK(execute("mul.wide.u32 %d, %a, %b;", 4, 8, {0xffffffff}, {5}) == Values{0x4fffffffbULL});
  CHECK(execute("mul.hi.u64 %d, %a, %b;", 8, 8, {1ULL << 63}, {10}) == Values{5});
  CHECK(execute("mad.lo.s32 %d, %a, %b, %c;", 4, 4, {3}, {5}, {0xfffffff0}) == Values{0xffffffff});
  CHECK(execute("mad.hi.u32 %d, %a, %b, %c;", 4, 4, {0x80000000}, {6}, {4}) == Values{7});
  CHECK(execute("cvt.u64.u32 %l0, %c; mad.wide.u32 %d, %a, %b, %l0;", 4, 8, {0xffffffff}, {2}, {3}) ==
        Values{0x200000001ULL});
  CHECK(execute("mul24.lo.s32 %d, %a, %b;", 4, 4, {0x01ffffff}, {3}) == Values{0xfffffffd});
  CHECK(execute("sad.s32 %d, %a, %b, %c;", 4, 4, {0xffffffff, 9}, {4, 2}, {1, 1}) == Values{6, 8});
  CHECK(execute("dp4a.s32.s32 %d, %a, %b, %c;", 4, 4, {0x01ff02fe}, {0x01010101}, {10}) == Values{10});
  CHECK(execute("dp4a.u32.u32 %d, %a, %b, %c;", 4, 4, {0x01ff02fe}, {0x01010101}, {10}) == Values{522});
}

TEST_CASE("integer quotients, extremes and signs") {
  CHECK(execute("div.s32 %d, %a, %b;", 4, 4, {7, 0xfffffff9, 5, 0x80000000}, {2, 2, 0, 0xffffffff}) ==
        Values{3, 0xfffffffd, 0xffffffff, 0x80000000});
  CHECK(execute("div.u32 %d, %a, %b;", 4, 4, {0xfffffff9}, {2}) == Values{0x7ffffffc});
  CHECK(execute("rem.s32 %d, %a, %b;", 4, 4, {0xfffffff9, 0x80000000}, {2, 0xffffffff}) == Values{0xffffffff, 0});
  CHECK(execute("rem.u64 %d, %a, %b;", 8, 8, {1000000000001ULL}, {10}) == Values{1});
  CHECK(execute("min.s32 %d, %a, %b;", 4, 4, {0xffffffff}, {1}) == Values{0xffffffff});
  CHECK(execute("min.u32 %d, %a, %b;", 4, 4, {0xffffffff}, {1}) == Values{1});
  CHECK(execute("max.s64 %d, %a, %b;", 8, 8, {~0ULL}, {1}) == Values{1});
  CHECK(execute("max.u16 %d, %a, %b;", 2, 2, {0xffff}, {1}) == Values{0xffff});
  CHECK(execute("neg.s32 %d, %a;", 4, 4, {5, 0x80000000}) == Values{0xfffffffb, 0x80000000});
  CHECK(execute("abs.s64 %d, %a;", 8, 8, {~4ULL, 3}) == Values{5, 3});
}

TEST_CASE("carries run through chains of words") {
  CHECK(execute("add.cc.u32 %w0, %a, %b; addc.u32 %d, %c, 0;", 4, 4, {0xffffffff, 1}, {1, 1}, {7, 7}) == Values{8, 7});
  CHECK(execute("sub.cc.u32 %w0, %a, %b; subc.u32 %d, %c, 0;", 4, 4, {0, 1}, {1, 1}, {7, 7}) == Values{6, 7});
  CHECK(execute("mad.lo.cc.u32 %w0, %a, %b, %c; madc.hi.u32 %d, %a, %b, 0;", 4, 4, {0xffffffff}, {2}, {2}) ==
        Values{2});
}

TEST_CASE("logic, shifts and fields") {
  CHECK(execute("and.b32 %d, %a, %b;", 4, 4, {12}, {10}) == Values{8});
  CHECK(execute("or.b64 %d, %a, %b;", 8, 8, {12}, {10}) == Values{14});
  CHECK(execute("xor.b16 %d, %a, %b;", 2, 2, {12}, {10}) == Values{6});
  CHECK(execute("not.b32 %d, %a;", 4, 4, {1}) == Values{0xfffffffe});
  CHECK(execute("cnot.b32 %d, %a;", 4, 4, {0, 9}) == Values{1, 0});
  CHECK(execute("shl.b32 %d, %a, %b;", 4, 4, {1, 1, 1}, {4, 32, 40}) == Values{16, 0, 0});
  CHECK(execute("shr.s32 %d, %a, %b;", 4, 4, {0x80000000, 0x80000000}, {4, 77}) == Values{0xf8000000, 0xffffffff});
  CHECK(execute("shr.u32 %d, %a, %b;", 4, 4, {0x80000000}, {4}) == Values{0x08000000});
  CHECK(execute("shf.l.wrap.b32 %d, %a, %b, %c;", 4, 4, {0xdeadbeef}, {0x12345678}, {8}) == Values{0x345678de});
  CHECK(execute("shf.r.wrap.b32 %d, %a, %b, %c;", 4, 4, {0xdeadbeef}, {0x12345678}, {40}) == Values{0x78deadbe});
  CHECK(execute("shf.r.clamp.b32 %d, %a, %b, %c;", 4, 4, {0xdeadbeef}, {0x12345678}, {40}) == Values{0x12345678});
  CHECK(execute("lop3.b32 %d, %a, %b, %c, 0xe8;", 4, 4, {0xf0}, {0xcc}, {0xaa}) == Values{0xe8});
  CHECK(execute("lop3.b32 %d, %a, %b, %c, 0x1b;", 4, 4, {0xf0}, {0xcc}, {0xaa}) == Values{0xffffff1b});
  CHECK(execute("prmt.b32 %d, %a, %b, %c;", 4, 4, {0x83020100}, {0x07060504}, {0x7531}) == Values{0x07058301});
  CHECK(execute("prmt.b32 %d, %a, %b, %c;", 4, 4, {0x83020100}, {0x07060504}, {0xb8b8}) == Values{0xff00ff00});
  CHECK(execute("prmt.b32.f4e %d, %a, %b, %c;", 4, 4, {0x03020100}, {0x07060504}, {1}) == Values{0x04030201});
  CHECK(execute("bfe.u32 %d, %a, %b, %c;", 4, 4, {0xabcd1234, 0xabcd1234}, {8, 28}, {8, 8}) == Values{0x12, 0xa});
  CHECK(execute("bfe.s32 %d, %a, %b, %c;", 4, 4, {0x0000f000}, {12}, {4}) == Values{0xffffffff});
  CHECK(execute("bfi.b32 %d, %a, %b, 8, 4;", 4, 4, {0xff}, {0}) == Values{0xf00});
  CHECK(execute("popc.b32 %d, %a;", 4, 4, {0xf0f0}) == Values{8});
  CHECK(execute("clz.b64 %d, %a;", 8, 4, {1}) == Values{63});
  CHECK(execute("brev.b32 %d, %a;", 4, 4, {1, 0x30}) == Values{0x80000000, 0x0c000000});
  CHECK(execute("bfind.u32 %d, %a;", 4, 4, {0x1000, 0}) == Values{12, 0xffffffff});
  CHECK(execute("bfind.shiftamt.s32 %d, %a;", 4, 4, {0xffffff00}) == Values{24});
}
