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
  // Targets with threads only: values are scalars, variables may be packs of elements and arrays of packs.
  thread,       // number of the thread in its block (i32)
  block,        // number of the block (i32)
  head_length,  // args: pointer, limit (i32): elements of dtype `memory` up to a multiple of 16 bytes
  declare,      // payload: variable, from here on
  load_pack,    // payload: variable; args: pointer [, number in the array]
  store_pack,   // payload: variable; args: pointer [, number in the array]
  element,      // payload: variable; args: place in the pack [, number in the array]
  set_element,  // payload: variable; args: value, place in the pack [, number in the array]
  barrier,      // integer: threads that wait for each other; all of the block, or up to a warp
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
  enum class Unroll : std::uint8_t { free, never, always } unroll = Unroll::free;
};
struct If {
  ValueId condition = no_value;
  Block body;
  Block otherwise;
};
struct Comment {
  std::string text;
};
// state = merge(state, given), by the monoid's whole program.
struct MergeState {
  std::uint32_t monoid = 0;
  DType element = DType::f32;
  std::vector<VariableId> state;
  std::vector<ValueId> given;
};
// Merges the states of `team` threads in the order of their numbers; all of them get the result. A team of more than a
// warp is the whole block and waits for each other.
struct Exchange {
  std::uint32_t monoid = 0;
  DType element = DType::f32;
  int team = 32;
  std::vector<VariableId> state;
};
struct Item {
  std::variant<Instruction, For, If, Comment, MergeState, Exchange> node;
};

struct Value {
  Type type;
  std::string name;    // unique in the kernel; empty for scalar constants, which are spelled in place
  bool named = false;  // on purpose: readers should meet the name
};
// A mutable register.
struct Variable {
  std::string name;
  Type type;
  int pack = 0;   // elements of a pack, 16 bytes aligned; 0: a plain value
  int count = 0;  // packs in an array; 0: one
};

// The function that MergeState and Exchange stand for: earlier = merge(earlier, later).
struct MergeFunction {
  std::uint32_t monoid = 0;
  DType element = DType::f32;
  std::vector<VariableId> earlier, later;
  Block body;
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
  std::vector<dsl::Monoid> monoids;
  std::vector<MergeFunction> merges;
  int threads = 0;                      // of a block, on targets that have them
  std::vector<std::string> assertions;  // what the text takes for granted: condition, then why
};

}  // namespace tigon::lower
