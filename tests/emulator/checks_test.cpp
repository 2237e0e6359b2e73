// The checks, one small kernel each: what is wrong is reported under every schedule, what is right is not.
#include "small_kernel.hpp"

using namespace emulator_test;

namespace {
bool always(const Faults& faults, Fault fault) {
  return std::find(faults.always.begin(), faults.always.end(), fault) != faults.always.end();
}
}  // namespace

TEST_CASE("bounds of shared arrays, of global memory and of local arrays") {
  CHECK(always(faults_of("st.shared.u32 [%r3+256], %r1;", {1, 1}), Fault::out_of_bounds));
  CHECK(always(faults_of("st.shared.u32 [%r3+-4], %r1;", {1, 1}), Fault::out_of_bounds));
  CHECK(always(faults_of("st.shared.v4.u32 [%r3+248], {%r1, %r1, %r1, %r1};", {1, 1}), Fault::out_of_bounds));
  CHECK(faults_of("st.shared.u32 [%r3+252], %r1;", {1, 1}).ever.empty());
  CHECK(always(faults_of("st.global.u32 [%rd1+4096], %r1;", {1, 1}), Fault::out_of_bounds));
  CHECK(always(faults_of("st.global.u32 [%rd1+-4], %r1;", {1, 1}), Fault::out_of_bounds));
  CHECK(always(faults_of("mov.u64 %rd2, 64; ld.global.u32 %r5, [%rd2];", {1, 1}), Fault::out_of_bounds));
  CHECK(faults_of("st.global.u32 [%rd1+4092], %r1;", {1, 1}).ever.empty());
  CHECK(always(faults_of(".local .b8 array[16]; mov.u64 %rd3, array; ld.local.u32 %r5, [%rd3+64];", {1, 1}),
               Fault::out_of_bounds));
  const auto dynamic = "mov.u32 %r6, dynamic; st.shared.u32 [%r6+60], %r1;";
  CHECK(faults_of(dynamic, {1, 1, 64}).ever.empty());
  CHECK(always(faults_of(dynamic, {1, 1, 60}), Fault::out_of_bounds));
}

TEST_CASE("alignment of shared and global accesses") {
  CHECK(always(faults_of("st.shared.v2.f32 [%r3+4], {%f1, %f1};", {1, 1}), Fault::misaligned));
  CHECK(always(faults_of("ld.global.u32 %r5, [%rd1+2];", {1, 1}), Fault::misaligned));
  CHECK(faults_of("ld.global.u16 %h1, [%rd1+2];", {1, 1}).ever.empty());
}

TEST_CASE("uninitialized shared memory") {
  CHECK(always(faults_of("ld.shared.u32 %r5, [%r3];", {1, 1}), Fault::uninitialized));
  CHECK(always(faults_of("st.shared.u16 [%r3], %h1; ld.shared.u32 %r5, [%r3];", {1, 1}), Fault::uninitialized));
  CHECK(faults_of("st.shared.u16 [%r3], 1; ld.shared.u16 %h1, [%r3];", {1, 1}).ever.empty());
  // Shared memory does not survive its block.
  CHECK(always(faults_of("setp.ne.u32 %p1, %r2, 0; @%p1 bra READ; st.shared.u32 [%r3], 1; bra END;\n"
                         "READ: ld.shared.u32 %r5, [%r3];\nEND:",
                         {3, 1}),
               Fault::uninitialized));
}

TEST_CASE("races between warps in shared memory") {
  const std::string write_own = "mad.lo.u32 %r5, %r1, 4, %r3; st.shared.u32 [%r5], %r1;";
  const std::string read_other = "xor.b32 %r6, %r1, 32; mad.lo.u32 %r6, %r6, 4, %r3; ld.shared.u32 %r7, [%r6];";
  CHECK(always(faults_of(write_own + read_other, {1, 64}), Fault::race_write_read));
  CHECK(faults_of(write_own + "bar.sync 0;" + read_other, {1, 64}).ever.empty());
  CHECK(faults_of(write_own + "barrier.sync 3;" + read_other, {1, 64}).ever.empty());
  CHECK(faults_of(write_own + "bar.sync 1, 64;" + read_other, {1, 64}).ever.empty());
  CHECK(always(faults_of("st.shared.u32 [%r3], 1;", {1, 64}), Fault::race_write_write));
  CHECK(always(faults_of(write_own + "bar.sync 0;" + read_other + write_own, {1, 64}), Fault::race_read_write));
}

TEST_CASE("lanes of a warp are ordered by the warp's barrier, not by running in lockstep") {
  const std::string write_own = "mad.lo.u32 %r5, %r1, 4, %r3; st.shared.u32 [%r5], %r1;";
  const std::string read_next = "xor.b32 %r6, %r1, 1; mad.lo.u32 %r6, %r6, 4, %r3; ld.shared.u32 %r7, [%r6];";
  CHECK(always(faults_of(write_own + read_next), Fault::race_write_read));
  CHECK(faults_of(write_own + "bar.warp.sync -1;" + read_next).ever.empty());
  CHECK(always(faults_of(write_own + "shfl.sync.bfly.b32 %r8, %r1, 1, 31, -1;" + read_next), Fault::race_write_read));
  CHECK(always(faults_of(write_own + "bar.warp.sync -1;" + read_next + write_own), Fault::race_read_write));
}

TEST_CASE("races through global memory, between lanes and between blocks") {
  CHECK(always(faults_of("st.global.u32 [%rd1], 1;", {2, 1}), Fault::race_write_write));
  CHECK(always(faults_of("ld.global.u32 %r5, [%rd1]; add.u32 %r5, %r5, 1; st.global.u32 [%rd1], %r5;", {2, 1}),
               Fault::race_write_read));
  CHECK(faults_of("red.global.add.u32 [%rd1], 1;", {3, 64}).words[0] == 192);
  CHECK(faults_of("red.global.add.u32 [%rd1], 1;", {3, 64}).ever.empty());
  CHECK(faults_of(word_address("%r2") + "st.global.u32 [%rd2], %r2;", {5, 1}).ever.empty());
  // One half of a word each: no race.
  CHECK(
      faults_of("mul.wide.u32 %rd2, %r2, 2; add.s64 %rd2, %rd1, %rd2; st.global.u16 [%rd2], 7;", {4, 1}).ever.empty());
  // Wide accesses after narrow ones: the cells were divided.
  CHECK(faults_of("setp.eq.u32 %p1, %r2, 0; @%p1 st.global.u16 [%rd1+6], 7; @!%p1 ld.global.v4.u32 {%r5, %r6, %r7, "
                  "%r8}, [%rd1];",
                  {2, 1})
            .never_clean);
  CHECK(
      faults_of("setp.eq.u32 %p1, %r2, 0; @%p1 st.global.u16 [%rd1+6], 7; @!%p1 ld.global.v2.u32 {%r5, %r6}, [%rd1+8];",
                {2, 1})
          .ever.empty());
  // The next launch is ordered after this one.
  Runner runner(small_kernel("st.global.u32 [%rd1], 1;"));
  const auto buffer = runner.put(std::vector<std::uint32_t>(4, 0));
  CHECK(runner.run("test", {1, 1}, buffer));
  CHECK(runner.run("test", {1, 1}, buffer));
}

TEST_CASE("volatile and relaxed accesses do not race with each other") {
  const auto text =
      "setp.eq.u32 %p1, %r2, 0; @%p1 st.volatile.global.u32 [%rd1], 7; @!%p1 ld.relaxed.gpu.global.u32 %r5, [%rd1];";
  CHECK(faults_of(text, {2, 1}).ever.empty());
}

TEST_CASE("barriers that part of a warp reaches, or that never complete") {
  CHECK(always(faults_of("setp.lt.u32 %p1, %r1, 16; @%p1 bar.sync 0;"), Fault::divergent_barrier));
  CHECK(always(faults_of("setp.lt.u32 %p1, %r1, 32; @!%p1 bar.sync 0, 128;", {1, 64}), Fault::deadlock));
  CHECK(always(faults_of("setp.lt.u32 %p1, %r1, 32; @%p1 bra A; bar.sync 1; bra B;\nA: bar.sync 2;\nB:", {1, 64}),
               Fault::deadlock));
  // Warps that have exited are not waited for.
  CHECK(faults_of("setp.lt.u32 %p1, %r1, 32; @%p1 exit; bar.sync 0;", {1, 64}).ever.empty());
  // Arriving without waiting.
  CHECK(faults_of("setp.lt.u32 %p1, %r1, 32; @%p1 bra A; mad.lo.u32 %r5, %r1, 4, %r3; st.shared.u32 [%r5+-128], %r1; "
                  "bar.arrive 1, 64; bra B;\nA: bar.sync 1, 64; mad.lo.u32 %r5, %r1, 4, %r3; ld.shared.u32 %r6, "
                  "[%r5];\nB:",
                  {1, 64})
            .ever.empty());
}

TEST_CASE("masks that name lanes which are elsewhere or gone") {
  CHECK(always(faults_of("setp.lt.u32 %p1, %r1, 7; @%p1 exit; shfl.sync.bfly.b32 %r5, %r1, 1, 31, -1;"),
               Fault::absent_lane));
  CHECK(always(faults_of("setp.lt.u32 %p1, %r1, 7; @%p1 vote.sync.ballot.b32 %r5, 1, -1;"), Fault::absent_lane));
  CHECK(faults_of("setp.lt.u32 %p1, %r1, 8; @%p1 vote.sync.ballot.b32 %r5, 1, 255;").ever.empty());
  // Lanes that leave a loop at different times wait for each other at the shuffle.
  CHECK(faults_of("mov.u32 %r5, 0;\nLOOP: add.u32 %r5, %r5, 1; setp.le.u32 %p1, %r5, %r1; @%p1 bra LOOP;\n"
                  "shfl.sync.bfly.b32 %r6, %r5, 1, 31, -1;")
            .ever.empty());
  // The code behind the loop stands before it.
  CHECK(faults_of(
            "mov.u32 %r5, 0; bra LOOP;\nAFTER: shfl.sync.bfly.b32 %r6, %r5, 1, 31, -1; ret;\nLOOP: add.u32 %r5, %r5, "
            "1; setp.gt.u32 %p1, %r5, %r1; @%p1 bra AFTER; bra LOOP;")
            .ever.empty());
}

TEST_CASE("trap stops the kernel") {
  const auto faults = faults_of("setp.eq.u32 %p1, %r1, 5; @%p1 trap;");
  CHECK(always(faults, Fault::trap));
}

TEST_CASE("asynchronous copies that are not waited for") {
  const std::string copy = "cp.async.ca.shared.global [%r3], [%rd1], 16; cp.async.commit_group;";
  CHECK(always(faults_of(copy + "ld.shared.u32 %r5, [%r3];", {1, 1}), Fault::copy_pending));
  // A second copy into bytes that hold an earlier one's is pending again, a whole warp side by side as well.
  const std::string rows =
      "mad.lo.u32 %r5, %r1, 8, %r3; mul.wide.u32 %rd2, %r1, 8; add.s64 %rd2, %rd1, %rd2; "
      "cp.async.ca.shared.global [%r5], [%rd2], 8; cp.async.wait_all; "
      "cp.async.ca.shared.global [%r5], [%rd2], 8; ";
  CHECK(always(faults_of(rows + "ld.shared.u32 %r6, [%r5];"), Fault::copy_pending));
  CHECK(faults_of(rows + "cp.async.wait_all; ld.shared.u32 %r6, [%r5];").ever.empty());
  CHECK(always(faults_of(copy + "cp.async.wait_group 1; ld.shared.u32 %r5, [%r3];", {1, 1}), Fault::copy_pending));
  CHECK(faults_of(copy + "cp.async.wait_group 0; ld.shared.u32 %r5, [%r3];", {1, 1}).ever.empty());
  CHECK(faults_of("cp.async.ca.shared.global [%r3], [%rd1], 8; cp.async.wait_all; ld.shared.u32 %r5, [%r3+4];", {1, 1})
            .ever.empty());
  CHECK(always(
      faults_of("cp.async.ca.shared.global [%r3], [%rd1], 8; cp.async.wait_all; ld.shared.u32 %r5, [%r3+8];", {1, 1}),
      Fault::uninitialized));
}

TEST_CASE("a report says what, where, who and with whom") {
  const auto text = faults_of("st.shared.u32 [%r3+8], 1;", {1, 64}).text;
  CHECK_THAT(text, Catch::Contains("race: write after another thread's write in test") &&
                       Catch::Contains("4 bytes at shared first + 8") && Catch::Contains("PTX line") &&
                       Catch::Contains("st.shared.u32 [%r3+8], 1") && Catch::Contains("of block 0"));
}

TEST_CASE("a warp that spins on another's flag does not stop the others") {
  const auto words = words_of(
      "setp.eq.u32 %p3, %r1, 0; @%p3 st.shared.u32 [%r3], 0; bar.sync 0; setp.lt.u32 %p1, %r1, 32; @!%p1 bra SET;\n"
      "WAIT: ld.volatile.shared.u32 %r5, [%r3]; setp.ne.u32 %p2, %r5, 77; @%p2 bra WAIT;\n" +
          word_address("%r1") +
          "st.global.u32 [%rd2], %r5; ret;\nSET: setp.eq.u32 %p3, %r1, 32; @%p3 st.volatile.shared.u32 [%r3], 77;",
      {1, 64});
  CHECK(words[31] == 77);
}

TEST_CASE("a block that waits for another's flag lets that one start") {
  // Block 0 waits for what the last block writes.
  const auto words = words_of(
      "setp.eq.u32 %p1, %r2, 0; @!%p1 bra SET;\nWAIT: ld.acquire.gpu.global.u32 %r5, [%rd1]; setp.ne.u32 %p2, %r5, 77; "
      "@%p2 "
      "bra WAIT; ld.global.u32 %r6, [%rd1+8]; st.global.u32 [%rd1+4], %r6; ret;\n"
      "SET: setp.eq.u32 %p3, %r2, 3; @!%p3 bra END; st.global.u32 [%rd1+8], 5; st.release.gpu.global.u32 [%rd1], "
      "77;\nEND:",
      {4, 1});
  CHECK(words[1] == 5);
}

TEST_CASE("a kernel that never ends is given up") {
  Runner runner(small_kernel("LOOP: ld.volatile.global.u32 %r5, [%rd1]; setp.eq.u32 %p1, %r5, 0; @%p1 bra LOOP;"));
  runner.machine.schedule.instruction_limit = 1 << 16;
  CHECK_FALSE(runner.run("test", {2, 1}, runner.put(std::vector<std::uint32_t>(1, 0))));
  CHECK(runner.reported(Fault::deadlock));
  CHECK_THAT(runner.reports(), Catch::Contains("no block has finished for 65536 instructions"));
}

TEST_CASE("another block's shared memory is touched before that block may exit") {
  // Block 0 of each cluster reads what block 1 wrote; only the last barrier keeps block 1 there.
  const std::string read =
      "mov.u32 %r5, %cluster_ctarank; st.shared.u32 [%r3], %r5; barrier.cluster.arrive; barrier.cluster.wait; "
      "setp.eq.u32 "
      "%p1, %r5, 0; mapa.shared::cluster.u32 %r6, %r3, 1; @%p1 ld.shared::cluster.u32 %r7, [%r6];";
  CHECK(always(faults_of(read, {4, 1, 0, 2}), Fault::block_exited));
  CHECK(faults_of(read + "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;", {4, 1, 0, 2}).ever.empty());
  CHECK(always(faults_of("mapa.shared::cluster.u32 %r6, %r3, 5; st.shared::cluster.u32 [%r6], 1;", {2, 1, 0, 2}),
               Fault::out_of_bounds));
}
