// The parsed form of a PTX module: what NVRTC's text says, with every register, variable and label resolved.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tigon::emulator::ptx {

// A fundamental type of PTX; the packed ones appear in instruction suffixes only.
enum class Type : std::uint8_t {
  none,
  pred,
  b8,
  u8,
  s8,
  b16,
  u16,
  s16,
  f16,
  bf16,
  b32,
  u32,
  s32,
  f32,
  tf32,
  f16x2,
  bf16x2,
  b64,
  u64,
  s64,
  f64,
  b128,
  e4m3,
  e5m2,
  e4m3x2,
  e5m2x2,
  u16x2,
  s16x2,
};

Type parse_type(std::string_view suffix);  // without the dot; Type::none if it names no type
std::string_view type_name(Type type);
int type_bytes(Type type);  // 0 for pred and none
bool is_float(Type type);
bool is_signed(Type type);

enum class Space : std::uint8_t { generic, global, shared, local, constant, param };

// Where an instruction came from, for reports: the CUDA line by .loc, and the line of the PTX text.
struct Line {
  std::uint32_t file = 0;  // number in the module's file table; 0 when the text carries no .loc
  std::uint32_t line = 0;
  std::uint32_t inlined_line = 0;  // the line of the call into which an inlined function was put
  std::uint32_t ptx_line = 0;
};

struct Register {
  std::string name;
  Type type = Type::b32;
};

struct Initializer {
  std::uint64_t offset = 0;
  std::vector<std::uint8_t> bytes;
  std::string symbol;  // an address to store there instead, plus the offset held in `bytes`
};

struct Variable {
  std::string name;
  Space space = Space::global;
  Type type = Type::b8;
  std::uint64_t bytes = 0;
  std::uint32_t align = 1;
  bool dynamic = false;  // an extern array whose size the launch gives
  bool external = false;
  std::vector<Initializer> initializers;
};

enum class OperandKind : std::uint8_t { none, reg, special, integer, floating, symbol, label, address, vector, sink };

struct Operand {
  OperandKind kind = OperandKind::none;
  bool negated = false;           // !p
  std::uint32_t reg = 0;          // register number in the function
  std::int32_t second = -1;       // q of p|q, a register; -2 for p|_
  std::int64_t integer = 0;       // the integer, the offset of an address or a symbol, an instruction for a label
  double floating = 0;            // a decimal literal
  int literal_bytes = 0;          // 4 for 0f…, 8 for 0d…, whose bits are in `integer`
  bool base_is_register = false;  // of an address
  std::int32_t variable = -1;     // a symbol's variable: >= 0 in the function, else see `symbol`
  std::string symbol;             // a module's variable, a function, a special register, or a label
  std::vector<Operand> parts;     // a vector's elements, or further coordinates of an address
};

struct Instruction {
  std::int32_t guard = -1;  // predicate register
  bool guard_negated = false;
  std::string text;  // as written, for messages
  std::string opcode;
  std::vector<std::string> modifiers;
  std::vector<Operand> operands;
  std::uint32_t scope = 0;
  Line line;
};

struct Function {
  std::string name;
  bool entry = false;
  bool declared_only = false;
  std::vector<std::uint32_t> parameters;  // numbers of variables
  std::vector<std::uint32_t> results;
  std::vector<Register> registers;
  std::vector<Variable> variables;  // parameters, shared, local and call parameters
  std::vector<Instruction> instructions;
  std::vector<std::vector<std::uint32_t>> branch_tables;  // of brx.idx: numbers of instructions
  std::uint32_t max_threads = 0;                          // .maxntid or .reqntid, as a product
  std::array<std::uint32_t, 3> cluster{};                 // .reqnctapercluster, zeros if there is none
  Line line;
};

struct Module {
  std::string version;
  std::string target;
  std::vector<std::string> files;  // by number of .file
  std::vector<Variable> variables;
  std::vector<Function> functions;
};

// Throws PtxError for text that does not follow the grammar, with the line.
Module parse(std::string_view text);

}  // namespace tigon::emulator::ptx
