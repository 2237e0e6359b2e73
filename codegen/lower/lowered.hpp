// The lowered nest: structured control flow over typed scalar and vector values. Every choice is made; printers only
// spell.
#pragma once
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "codegen/loops/nest.hpp"

namespace tigon::lower {

using ValueId = std::uint32_t;
using VariableId = std::uint32_t;
inline constexpr ValueId no_value = 0xffffffffu;

// In registers a boolean is one bit, a 16-bit float is its bits; in memory a boolean is a byte.
struct Type {
  DType dtype = DType::f32;
  std::uint16_t lanes = 1;  // 1: a scalar
  bool pointer = false;
  friend bool operator==(const Type&, const Type&) = default;
};

enum class Code : std::uint8_t {
  constant,  // number or integer, in every lane
  first,
  last,          // the entry's partition range (i64)
  pointer_of,    // payload: parameter
  pointer_bits,  // payload: parameter; its address as i64
  scratch,       // integer: byte offset into the worker's scratch
  slot,          // payload: slot (i64)
  scalar,        // payload: scalar parameter
  lane_numbers,  // 0, 1, 2 ... (i32 or i64)
  operation,     // op on args of one lane count
  cast,          // to type.dtype, rounding to nearest even
  broadcast,     // a scalar into every lane
  slice,         // type.lanes lanes of args[0] from lane `integer` on
  reverse,       // lanes in opposite order
  address,  // args: pointer, i64 offset in elements of dtype `memory` (a vector of offsets gives a vector of pointers)
  load,     // args: pointer [, mask]: consecutive elements, masked lanes are 0
  gather,   // args: vector of pointers [, mask]
  store,    // args: value, pointer [, mask]
  scatter,  // args: value, vector of pointers [, mask]
  read,     // payload: variable
  write,    // payload: variable; args: value
};

struct Instruction {
  Code code = Code::constant;
  Type type;                    // of the result
  ValueId result = no_value;    // no_value: none
  ScalarOp op = ScalarOp::add;  // code operation
  DType memory = DType::f32;    // element dtype in memory: address, load, gather, store, scatter
  bool non_negative = false;    // operation on integers known to be >= 0
  bool streaming = false;       // a store that bypasses the cache; its address is a multiple of `alignment`
  std::uint16_t alignment = 0;  // bytes; 0: the element's
  std::uint32_t payload = 0;
  double number = 0;
  std::int64_t integer = 0;
  std::vector<ValueId> args;
};

struct Item;
using Block = std::vector<Item>;

// for (index = begin; index < end; index += step)
struct For {
  ValueId index = no_value;
  ValueId begin = no_value, end = no_value;
  std::int64_t step = 1;
  Block body;
};
struct If {
  ValueId condition = no_value;
  Block body;
  Block otherwise;
};
struct Comment {
  std::string text;
};
struct Item {
  std::variant<Instruction, For, If, Comment> node;
};

struct Value {
  Type type;
  std::string name;  // unique in the kernel; empty for scalar constants, which are spelled in place
};
// A mutable register.
struct Variable {
  std::string name;
  Type type;
};

struct Lowered {
  std::string name;
  std::string formula;
  std::vector<std::string> notes;  // further lines of the head comment
  std::vector<loops::Axis> axes;
  std::vector<loops::Parameter> parameters;
  std::vector<loops::ScalarParameter> scalars;
  std::vector<loops::Slot> slots;
  loops::ParameterLayout layout;
  std::vector<Value> values;
  std::vector<Instruction> constants;  // scalar constants, `first` and `last`: spelled in place
  std::vector<Variable> variables;
  Block body;
  std::int64_t scratch_bytes = 0;  // per worker, aligned to 64 bytes
};

}  // namespace tigon::lower
