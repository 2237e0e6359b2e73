// The parser and the decoder: what the text says, and what is wrong with text that says nothing sensible.
#include "kernels.hpp"
#include "small_kernel.hpp"

using namespace emulator_test;
using namespace tigon::emulator;

namespace {
std::string problem_with(const std::string& text) {
  try {
    Machine machine;
    LoadedModule module(text, machine);
    return "";
  } catch (const PtxError& error) {
    return error.what();
  }
}
}  // namespace

TEST_CASE("a module's variables, parameters and limits") {
  const auto module = ptx::parse(R"(
.version 9.0 /* a comment */
.target sm_90a, debug
.address_size 64
.file 1 "x.cu", 123, 456
.visible .global .align 8 .u64 pointer = generic(table)+8;
.const .align 4 .b8 table[12] = {1, 2, 0x3, -1};
.extern .shared .align 16 .b8 dynamic[];
.visible .entry kernel(
  .param .u64 .ptr .global .align 16 a,
  .param .align 8 .b8 box[24],
  .param .f32 x
)
.maxntid 128, 2, 1
.minnctapersm 2
.reqnctapercluster 4, 1, 1
{
  .reg .b32 %r<3>, z;
  .loc 1 7 2
  ret;
}
)");
  CHECK(module.target == "sm_90a");
  CHECK(module.files.at(1) == "x.cu");
  REQUIRE(module.variables.size() == 3);
  CHECK(module.variables[0].initializers.back().symbol == "table");
  CHECK(module.variables[1].bytes == 12);
  CHECK(module.variables[1].initializers.front().bytes == std::vector<std::uint8_t>{1, 2, 3, 255});
  CHECK(module.variables[2].dynamic);
  const auto& kernel = module.functions.at(0);
  CHECK(kernel.max_threads == 256);
  CHECK(kernel.cluster[0] == 4);
  CHECK(kernel.registers.size() == 4);
  REQUIRE(kernel.parameters.size() == 3);
  CHECK(kernel.variables[1].bytes == 24);
  CHECK(kernel.instructions.at(0).line.line == 7);
}

TEST_CASE("scopes of inline assembly hide outer names, labels included") {
  Runner runner(small_kernel(
      "mov.u32 %r5, 1;\n{\n .reg .b32 %r5;\n .reg .pred p;\n mov.u32 %r5, 9;\n setp.eq.u32 p, %r5, 9;\n @p bra "
      "L;\n mov.u32 %r5, 8;\nL: add.u32 %r6, %r5, 1;\n}\n{\n bra L;\nL: add.u32 %r5, %r5, %r6;\n}\n"
      "st.global.u32 [%rd1], %r5;"));
  const auto buffer = runner.make<std::uint32_t>(1);
  REQUIRE(runner.run("test", {1, 1}, buffer));
  CHECK(runner.get<std::uint32_t>(buffer, 1)[0] == 11);
}

TEST_CASE("initial values of variables are there, and constants cannot be written") {
  const std::string text = R"(.version 9.0
.target sm_80
.address_size 64
.const .align 4 .f32 values[3] = {0f3F800000, 2.5, 0f40400000};
.global .align 8 .u64 where = generic(values)+4;
.global .align 4 .u32 zero[2];
.visible .entry test(.param .u64 out)
{
  .reg .b64 %rd<4>; .reg .f32 %f<4>; .reg .b32 %r<3>;
  ld.param.u64 %rd1, [out];
  ld.const.f32 %f1, [values];
  ld.global.u64 %rd2, [where];
  ld.f32 %f2, [%rd2];
  add.f32 %f1, %f1, %f2;
  ld.global.u32 %r1, [zero+4];
  cvt.rn.f32.u32 %f3, %r1;
  add.f32 %f1, %f1, %f3;
  st.global.f32 [%rd1], %f1;
  ret;
}
)";
  Runner runner(text);
  const auto out = runner.make<float>(1);
  REQUIRE(runner.run("test", {1, 1}, out));
  CHECK(runner.get<float>(out, 1)[0] == 3.5F);
}

TEST_CASE("text that cannot be understood is told with its line") {
  CHECK_THAT(problem_with(".version 9.0\n.target sm_90\n.sideways 3\n"),
             Catch::Contains("PTX line 3") && Catch::Contains(".sideways"));
  CHECK_THAT(problem_with(small_kernel("add.u32 %r5, %r6;")), Catch::Contains("operand"));
  CHECK_THAT(problem_with(small_kernel("add.u32 %r5, %r6, %nothing;")),
             Catch::Contains("unknown special register %nothing"));
  CHECK_THAT(problem_with(small_kernel("bra NOWHERE;")), Catch::Contains("label"));
  CHECK_THAT(problem_with(small_kernel("add.u32 %r5, %rd1, %r6;")), Catch::Contains("%rd1 has 8 bytes"));
  CHECK_THAT(problem_with(small_kernel("mov.u32 %r5, 1")), Catch::Contains("PTX line"));
  CHECK_THAT(problem_with(small_kernel("call.uni nobody;")), Catch::Contains("nobody has no body"));
  CHECK_THAT(problem_with(small_kernel("shfl.bfly.b32 %r5, %r1, 1, 31;")), Catch::Contains(".sync"));
  CHECK_THAT(problem_with(
                 small_kernel("mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32 {%r5, %r6}, {%r7}, {%r8}, {%r5, %r6};")),
             Catch::Contains("type is missing"));
  CHECK_THAT(problem_with(small_kernel("cp.async.bulk.commit_group;")), Catch::Contains("not known"));
  CHECK_THAT(problem_with(small_kernel("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r3], 32;")),
             Catch::Contains("unknown instruction tcgen05"));
  CHECK(problem_with(small_kernel("")).empty());
}

TEST_CASE("registers share rows, so that a warp's arena stays small") {
  Machine machine;
  LoadedModule module(read_fixture("rows_sm_90a.ptx"), machine);
  const auto* program = module.kernel("exp_rows");
  REQUIRE(program != nullptr);
  const auto parsed = ptx::parse(read_fixture("rows_sm_90a.ptx"));
  std::size_t registers = 0;
  for (const auto& function : parsed.functions) {
    if (function.name == "exp_rows") registers = function.registers.size();
  }
  CHECK(registers > 500);
  CHECK(program->arena_bytes < registers * 128 / 4);
}
