// The text of lowered nests: streaming stores, every LLVM and target, vector instructions in the machine code.
#include <cmath>
#include <cstring>

#include "codegen/llvm/subset.hpp"
#include "dsl/monoid.hpp"
#include "loader_versions.hpp"
#include "loops_nests.hpp"
#include "loops_run.hpp"
#include "runtime/llvm/session.hpp"

using namespace tigon;
using namespace tigon::testing;
using loops::Access;
using loops::Block;
using loops::ExprId;
using loops::Loop;
using loops::StoreMode;

namespace {

std::size_t count_of(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

// y = x + 1, past the cache; with `second`, z = x - 1 as well; with `folded`, the row's sum too.
loops::Nest streaming_nest(DType dtype, bool second, bool folded) {
  Rows rows("streaming");
  auto& b = rows.builder;
  const auto x = rows.matrix("x");
  const auto y = rows.matrix("y", dtype, Access::write);
  const auto z = rows.matrix("z", DType::f32, Access::write);
  const auto total = rows.vector_of(rows.row_axis, "total", DType::f32, Access::write);
  const auto fold = b.fold("sum", b.monoid(dsl::builtin_monoid(dsl::BuiltinMonoid::sum)), DType::f32);
  rows.rows_part([&](Block& body, ExprId row) {
    Loop lanes = rows.lanes();
    const ExprId i = rows.index(lanes);
    const ExprId v = b.load(x, {row, i});
    const ExprId one = b.number(DType::f32, 1);
    lanes.body.push_back(loops::store(y, {row, i}, b.cast(dtype, b.add(v, one)), StoreMode::write, true));
    if (second) lanes.body.push_back(loops::store(z, {row, i}, b.sub(v, one), StoreMode::write, true));
    if (folded) {
      lanes.folds = {fold};
      lanes.body.push_back(loops::update(fold, {v}));
    }
    body.push_back(statement(lanes));
    if (folded) body.push_back(loops::store(total, {row}, b.finish(fold, 0)));
  });
  return b.nest;
}

// Up to the first `ret` of a function in memory, through the disassembler of the LLVM in use.
std::string disassembled(const void* code) {
  const runtime::Library& library = runtime::LlvmCompiler::get().session()->library;
  const runtime::CpuTarget target = runtime::host_target();
  using Initialise = void (*)();
  using Create = void* (*)(const char*, const char*, void*, int, void*, void*);
  using Decode = std::size_t (*)(void*, const std::uint8_t*, std::uint64_t, std::uint64_t, char*, std::size_t);
  const auto initialise = reinterpret_cast<Initialise>(library.symbol("LLVMInitializeX86Disassembler"));
  const auto create = reinterpret_cast<Create>(library.symbol("LLVMCreateDisasmCPU"));
  const auto decode = reinterpret_cast<Decode>(library.symbol("LLVMDisasmInstruction"));
  if (initialise == nullptr || create == nullptr || decode == nullptr) return {};
  initialise();
  void* disassembler = create(target.triple.c_str(), target.cpu.c_str(), nullptr, 0, nullptr, nullptr);
  if (disassembler == nullptr) return {};
  std::string text;
  const auto* bytes = static_cast<const std::uint8_t*>(code);
  for (int i = 0; i < 20000; ++i) {
    char line[256] = {};
    const std::size_t size = decode(disassembler, bytes, 16, 0, line, sizeof line);
    if (size == 0) break;
    text += std::string(line) + "\n";
    if (std::strstr(line, "ret") != nullptr) break;
    bytes += size;
  }
  return text;
}

}  // namespace

TEST_CASE("streaming stores are aligned whatever the pointers, and folds keep their bits", "[loops]") {
  for (const auto& machine : machines()) {
    for (const int form : {0, 1, 2, 3}) {
      const DType dtype = form == 1 ? DType::bf16 : DType::f32;
      const bool second = form == 2;
      const bool folded = form == 3;
      const NestKernel kernel = compile_nest(streaming_nest(dtype, second, folded), machine);
      INFO(kernel.text);
      const bool wide_enough = machine.vector_bytes / 4 * size_of(dtype) >= 16;
      CHECK((count_of(kernel.text, "!nontemporal") > 0) == wide_enough);
      for (const std::int64_t columns : {5, 64, 77, 160}) {
        std::vector<float> bits;
        for (const std::size_t shift : {0, 1, 3, 16}) {
          const auto size = static_cast<std::size_t>(3 * columns);
          const std::vector<float> x = numbers(size);
          std::vector<float> y(size + 64, 7), z(size + 64, 7), total(3);
          auto* at = reinterpret_cast<std::byte*>(y.data()) + shift * static_cast<std::size_t>(size_of(dtype));
          NestLaunch launch;
          launch.pointers = {const_cast<float*>(x.data()), at, z.data() + 2 * shift, total.data()};
          launch.extents = {{"row", 3}, {"column", columns}};
          for (int p = 0; p < 3; ++p) launch.strides[{p, 0}] = columns;
          launch.partitions = {2};
          run_nest(kernel, launch);
          std::size_t wrong = 0;
          for (std::size_t i = 0; i < size; ++i) {
            if (dtype == DType::f32)
              wrong += reinterpret_cast<float*>(at)[i] != x[i] + 1;
            else
              wrong += reinterpret_cast<bf16*>(at)[i].bits != to_bf16(x[i] + 1).bits;
            if (second) wrong += z[2 * shift + i] != x[i] - 1;
          }
          CHECK(wrong == 0);
          CHECK(y.back() == 7);
          if (folded && bits.empty()) bits = total;
          if (folded) CHECK(bits == total);
        }
      }
    }
  }
}

TEST_CASE("the text of nests compiles with every LLVM, for the host and for AVX2", "[loops]") {
  const std::vector<loops::Nest> nests = {norm_nest(), softmax_nest(), streaming_nest(DType::bf16, true, true)};
  for (const auto& compiler : installed_llvms()) {
    for (const int bytes : {64, 32, 16}) {
      const auto target = bytes == 64 ? compiler->host_target() : runtime::named_target("x86-64-v3");
      if (bytes > runtime::vector_bytes(target)) continue;
      for (const loops::Nest& nest : nests) {
        const std::string text = nest_text(nest, lower::cpu_machine(bytes));
        INFO("LLVM " << compiler->version() << ", " << target.cpu << "\n" << text);
        CHECK(llvm::outside_subset(text) == "");
        CHECK_FALSE(compiler->compile(text, target).empty());  // an undefined symbol would throw
        CHECK(text == nest_text(nest, lower::cpu_machine(bytes)));
      }
    }
  }
}

TEST_CASE("the machine code of rows is vector code", "[loops]") {
  const int bytes = runtime::vector_bytes(runtime::host_target());
  const std::string vector = bytes == 64 ? "zmm" : "ymm";
  for (const loops::Nest& nest : {norm_nest(), softmax_nest()}) {
    const NestKernel kernel = compile_nest(nest, lower::cpu_machine(bytes));
    const std::string code = disassembled(kernel.object->symbol(nest.name));
    if (code.empty()) {
      WARN("no disassembler in this LLVM");
      return;
    }
    INFO(code);
    CHECK(count_of(code, vector) > 60);
    CHECK(count_of(code, "vfmadd") + count_of(code, "vfmsub") >= 4);
    CHECK(count_of(code, "call") == 0);
  }
}
