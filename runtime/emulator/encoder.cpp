// What a family asks about one instruction: modifiers, rows of operands, addresses.
#include <algorithm>
#include <bit>

#include "runtime/emulator/decoder.hpp"
#include "runtime/emulator/half.hpp"
#include "runtime/emulator/memory.hpp"

namespace tigon::emulator {

using ptx::OperandKind;
using ptx::Type;

Encoder::Encoder(Decoder& decoder, const ptx::Function& function, const ptx::Instruction& source)
    : decoder_(decoder), function_(function), source_(source), modifiers_(source.modifiers) {}

void Encoder::fail(const std::string& sentence) const {
  throw PtxError(fmt::format("{}: {} in '{}' of {}", place_of(decoder_.module_, source_.line), sentence, source_.text,
                             function_.name));
}

bool Encoder::take(std::string_view modifier) {
  const auto at = std::find(modifiers_.begin(), modifiers_.end(), modifier);
  if (at == modifiers_.end()) return false;
  modifiers_.erase(at);
  return true;
}

int Encoder::take_any(std::initializer_list<std::string_view> modifiers) {
  int index = 0;
  for (const auto modifier : modifiers) {
    if (take(modifier)) return index;
    ++index;
  }
  return -1;
}

std::string Encoder::take_next() {
  if (modifiers_.empty()) fail("a modifier is missing");
  auto first = modifiers_.front();
  modifiers_.erase(modifiers_.begin());
  return first;
}

Type Encoder::take_type() {
  for (auto at = modifiers_.begin(); at != modifiers_.end(); ++at) {
    const auto type = ptx::parse_type(*at);
    if (type == Type::none) continue;
    modifiers_.erase(at);
    return type;
  }
  fail("a type is missing");
}

ptx::Space Encoder::take_space() {
  if (take("global")) return ptx::Space::global;
  if (take("shared") || take("shared::cta") || take("shared::cluster")) return ptx::Space::shared;
  if (take("local")) return ptx::Space::local;
  if (take("const")) return ptx::Space::constant;
  if (take("param") || take("param::entry") || take("param::func")) return ptx::Space::param;
  return ptx::Space::generic;
}

bool Encoder::has(std::string_view modifier) const {
  return std::find(modifiers_.begin(), modifiers_.end(), modifier) != modifiers_.end();
}

void Encoder::finish() const {
  if (!modifiers_.empty()) fail(fmt::format("unknown modifier .{} of {}", modifiers_.front(), source_.opcode));
}

const ptx::Operand& Encoder::operand(std::size_t index) const {
  if (index >= source_.operands.size()) fail("an operand is missing");
  return source_.operands[index];
}

void Encoder::expect_operands(std::size_t least, std::size_t most) const {
  if (size() < least || size() > std::max(least, most)) fail(fmt::format("{} operands", size()));
}

unsigned Encoder::register_bytes(const ptx::Operand& operand) const {
  return static_cast<unsigned>(ptx::type_bytes(function_.registers.at(operand.reg).type));
}

Type Encoder::register_type(const ptx::Operand& operand) const { return function_.registers.at(operand.reg).type; }

std::uint32_t Encoder::constant(std::uint64_t value, unsigned bytes) {
  if (bytes < 8) value &= (std::uint64_t{1} << (8 * bytes)) - 1;
  auto& offset = decoder_.constants_[{value, bytes}];
  if (offset == 0) {
    offset = decoder_.allocate(bytes * lanes_per_warp);
    decoder_.program_.constants.push_back({offset, static_cast<std::uint8_t>(bytes), value});
  }
  return offset;
}

std::uint32_t Encoder::constant_predicate(bool value) {
  auto& offset = decoder_.constants_[{value ? 1 : 0, 0}];
  if (offset == 0) {
    offset = decoder_.allocate(sizeof(Mask));
    decoder_.program_.constants.push_back({offset, 0, value ? all_lanes : Mask{0}});
  }
  return offset;
}

std::uint32_t Encoder::sink_row() {
  auto& offset = decoder_.sinks_[16];
  if (offset == 0) offset = decoder_.allocate(16 * lanes_per_warp);
  return offset;
}

std::uint32_t Encoder::carry_flag() {
  auto& offset = decoder_.sinks_[0];
  if (offset == 0) offset = decoder_.allocate(sizeof(Mask));
  return offset;
}

ptx::Space Encoder::symbol_space(const ptx::Operand& operand) const {
  if (operand.variable >= 0) return function_.variables[static_cast<std::size_t>(operand.variable)].space;
  for (const auto& variable : decoder_.module_.variables) {
    if (variable.name == operand.symbol) return variable.space;
  }
  return ptx::Space::generic;
}

std::uint64_t Encoder::symbol_value(const ptx::Operand& operand) const {
  const auto offset = static_cast<std::uint64_t>(operand.integer);
  if (operand.variable >= 0) {
    return decoder_.frames_.at(function_.name).variables[static_cast<std::size_t>(operand.variable)] + offset;
  }
  for (const auto& array : decoder_.program_.shared) {
    if (array.name == operand.symbol) return array.begin + offset;
  }
  const auto at = decoder_.symbols_.find(operand.symbol);
  if (at == decoder_.symbols_.end()) fail(fmt::format("unknown symbol {}", operand.symbol));
  return at->second + offset;
}

std::uint32_t Encoder::row(const ptx::Operand& operand, Type type) {
  const auto bytes = static_cast<unsigned>(ptx::type_bytes(type));
  switch (operand.kind) {
    case OperandKind::reg:
      if (register_bytes(operand) != bytes) {
        fail(fmt::format("the register {} has {} bytes where .{} needs {}", function_.registers[operand.reg].name,
                         register_bytes(operand), ptx::type_name(type), bytes));
      }
      return decoder_.frames_.at(function_.name).registers[operand.reg];
    case OperandKind::integer:
      if (type == Type::f32) return constant(std::bit_cast<std::uint32_t>(static_cast<float>(operand.integer)), 4);
      if (type == Type::f64) return constant(std::bit_cast<std::uint64_t>(static_cast<double>(operand.integer)), 8);
      return constant(static_cast<std::uint64_t>(operand.integer), bytes);
    case OperandKind::floating:
      if (operand.literal_bytes == static_cast<int>(bytes)) {
        return constant(static_cast<std::uint64_t>(operand.integer), bytes);
      }
      if (type == Type::f64) return constant(std::bit_cast<std::uint64_t>(operand.floating), 8);
      if (bytes == 4) return constant(std::bit_cast<std::uint32_t>(static_cast<float>(operand.floating)), 4);
      fail("a floating-point literal of another size");
    case OperandKind::special:
      return decoder_.special_row(operand.symbol, bytes, *this);
    case OperandKind::symbol:
      return constant(symbol_value(operand), bytes);
    case OperandKind::sink:
      return sink_row();
    default:
      fail("an operand of an unknown form");
  }
}

std::uint32_t Encoder::any_row(const ptx::Operand& operand, unsigned least, std::uint8_t& bytes) {
  if (operand.kind == OperandKind::sink) {
    bytes = static_cast<std::uint8_t>(std::max(least, 2U));
    return sink_row();
  }
  if (operand.kind != OperandKind::reg) {
    bytes = static_cast<std::uint8_t>(std::max(least, 2U));
    const Type types[] = {Type::b16, Type::b16, Type::b32, Type::b64};
    const bool is_floating = operand.kind == OperandKind::floating && operand.literal_bytes != 0;
    if (is_floating && operand.literal_bytes != bytes) fail("a literal of another size");
    return row(operand, types[std::countr_zero(static_cast<unsigned>(bytes))]);
  }
  bytes = static_cast<std::uint8_t>(register_bytes(operand));
  if (bytes < least) fail(fmt::format("the register {} is too small", function_.registers[operand.reg].name));
  return decoder_.frames_.at(function_.name).registers[operand.reg];
}

std::uint32_t Encoder::predicate(const ptx::Operand& operand, int bit) {
  if (operand.kind == OperandKind::integer) return constant_predicate(operand.integer != 0);
  if (operand.kind == OperandKind::sink) return sink_row();
  if (operand.kind != OperandKind::reg || function_.registers[operand.reg].type != Type::pred) {
    fail("an operand is no predicate");
  }
  if (operand.negated && bit < 0) fail("a negated predicate is not allowed here");
  if (operand.negated) out.negated = static_cast<std::uint8_t>(out.negated | 1U << bit);
  return decoder_.frames_.at(function_.name).registers[operand.reg];
}

std::uint32_t Encoder::second_predicate(std::size_t index) {
  const auto second = operand(index).second;
  if (second == -1) return 0;
  if (second == -2) return sink_row();
  if (function_.registers[static_cast<std::size_t>(second)].type != Type::pred)
    fail("the second result is no predicate");
  return decoder_.frames_.at(function_.name).registers[static_cast<std::size_t>(second)];
}

void Encoder::address(std::size_t index, std::size_t slot, std::uint8_t& bytes) {
  const auto& from = operand(index);
  if (from.kind != OperandKind::address) fail("an address was expected");
  if (!from.parts.empty()) fail("tensor coordinates are not supported");
  out.immediate = from.integer;
  bytes = 8;
  out.operand[slot] = 0;
  if (from.base_is_register) {
    bytes = static_cast<std::uint8_t>(register_bytes(from));
    if (bytes != 4 && bytes != 8) fail("an address register has 4 or 8 bytes");
    out.operand[slot] = decoder_.frames_.at(function_.name).registers[from.reg];
  } else if (!from.symbol.empty()) {
    out.immediate = static_cast<std::int64_t>(symbol_value(from));
    // A symbol of the shared or local space is an offset there; as a generic address it lies in the window.
    if (out.space == ptx::Space::generic) {
      const auto space = symbol_space(from);
      if (space == ptx::Space::shared) out.immediate += static_cast<std::int64_t>(shared_window);
      if (space == ptx::Space::local) out.immediate += static_cast<std::int64_t>(local_window);
    }
  }
}

}  // namespace tigon::emulator
