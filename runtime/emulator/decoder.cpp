// Turns a parsed kernel into a program: lays out registers and variables, and resolves branches and calls.
#include "runtime/emulator/decoder.hpp"

#include <algorithm>

#include "runtime/emulator/control.hpp"
#include "runtime/emulator/memory.hpp"

namespace tigon::emulator {

using ptx::OperandKind;
using ptx::Space;
using ptx::Type;

namespace {

constexpr std::uint64_t red_zone = 64;        // between shared arrays
constexpr std::uint64_t shared_begin = 1024;  // sm_90 keeps that much for itself

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

unsigned row_bytes(Type type) {
  return type == Type::pred ? 4 : static_cast<unsigned>(ptx::type_bytes(type)) * lanes_per_warp;
}

struct SpecialName {
  std::string_view name;
  SpecialRegister kind;
};

constexpr SpecialName special_names[] = {
    {"%tid.x", SpecialRegister::tid_x},
    {"%tid.y", SpecialRegister::tid_y},
    {"%tid.z", SpecialRegister::tid_z},
    {"%ntid.x", SpecialRegister::ntid_x},
    {"%ntid.y", SpecialRegister::ntid_y},
    {"%ntid.z", SpecialRegister::ntid_z},
    {"%ctaid.x", SpecialRegister::ctaid_x},
    {"%ctaid.y", SpecialRegister::ctaid_y},
    {"%ctaid.z", SpecialRegister::ctaid_z},
    {"%nctaid.x", SpecialRegister::nctaid_x},
    {"%nctaid.y", SpecialRegister::nctaid_y},
    {"%nctaid.z", SpecialRegister::nctaid_z},
    {"%laneid", SpecialRegister::lane},
    {"%warpid", SpecialRegister::warp},
    {"%nwarpid", SpecialRegister::warp_count},
    {"%smid", SpecialRegister::sm},
    {"%nsmid", SpecialRegister::sm_count},
    {"%gridid", SpecialRegister::grid},
    {"%lanemask_eq", SpecialRegister::mask_eq},
    {"%lanemask_lt", SpecialRegister::mask_lt},
    {"%lanemask_le", SpecialRegister::mask_le},
    {"%lanemask_gt", SpecialRegister::mask_gt},
    {"%lanemask_ge", SpecialRegister::mask_ge},
    {"%cluster_ctaid.x", SpecialRegister::cluster_ctaid_x},
    {"%cluster_ctaid.y", SpecialRegister::cluster_ctaid_y},
    {"%cluster_ctaid.z", SpecialRegister::cluster_ctaid_z},
    {"%cluster_nctaid.x", SpecialRegister::cluster_nctaid_x},
    {"%cluster_nctaid.y", SpecialRegister::cluster_nctaid_y},
    {"%cluster_nctaid.z", SpecialRegister::cluster_nctaid_z},
    {"%clusterid.x", SpecialRegister::clusterid_x},
    {"%clusterid.y", SpecialRegister::clusterid_y},
    {"%clusterid.z", SpecialRegister::clusterid_z},
    {"%nclusterid.x", SpecialRegister::nclusterid_x},
    {"%nclusterid.y", SpecialRegister::nclusterid_y},
    {"%nclusterid.z", SpecialRegister::nclusterid_z},
    {"%cluster_ctarank", SpecialRegister::cluster_rank},
    {"%cluster_nctarank", SpecialRegister::cluster_size},
    {"%dynamic_smem_size", SpecialRegister::dynamic_shared},
    {"%total_smem_size", SpecialRegister::total_shared},
};

}  // namespace

std::string place_of(const ptx::Module& module, const ptx::Line& line) {
  if (line.line == 0) return fmt::format("PTX line {}", line.ptx_line);
  const auto file = line.file < module.files.size() ? module.files[line.file] : std::string("line");
  const auto inlined = line.inlined_line != 0 ? fmt::format(" (inlined into line {})", line.inlined_line) : "";
  return fmt::format("{}:{}{}", file, line.line, inlined);
}

const FamilyTable& families() {
  static const FamilyTable table = [] {
    FamilyTable result;
    add_integer_families(result);
    add_bit_families(result);
    add_arithmetic_families(result);
    add_comparison_families(result);
    add_approximate_families(result);
    add_conversion_families(result);
    add_move_families(result);
    add_memory_families(result);
    add_atomic_families(result);
    add_copy_families(result);
    add_warp_families(result);
    add_barrier_families(result);
    add_matrix_families(result);
    return result;
  }();
  return table;
}

std::uint32_t Decoder::allocate(unsigned bytes) {
  if (bytes >= 64) program_.arena_bytes = static_cast<std::uint32_t>(round_up(program_.arena_bytes, 64));
  const auto offset = program_.arena_bytes;
  program_.arena_bytes += bytes;
  return offset;
}

std::uint32_t Decoder::special_row(const std::string& name, unsigned bytes, const Encoder& encoder) {
  for (const auto& special : special_names) {
    if (special.name != name) continue;
    auto& offset = specials_[{static_cast<int>(special.kind), bytes}];
    if (offset == 0) {
      offset = allocate(bytes * lanes_per_warp);
      program_.specials.push_back({offset, static_cast<std::uint8_t>(bytes), special.kind});
    }
    return offset;
  }
  encoder.fail(fmt::format("unknown special register {}", name));
}

const ptx::Function* Decoder::find_function(std::string_view name) const {
  const ptx::Function* declared = nullptr;
  for (const auto& function : module_.functions) {
    if (function.name != name) continue;
    if (!function.declared_only) return &function;
    declared = &function;
  }
  return declared;
}

// Callees first: lanes at the lowest instruction run first, so that callers wait for lanes that are in a call.
void Decoder::visit(const ptx::Function& function, std::vector<const ptx::Function*>& order, int depth) const {
  if (std::find(order.begin(), order.end(), &function) != order.end()) return;
  if (depth > 64) throw PtxError(fmt::format("{} calls itself, which is not supported", function.name));
  for (const auto& instruction : function.instructions) {
    if (instruction.opcode != "call") continue;
    for (const auto& operand : instruction.operands) {
      if (operand.kind != OperandKind::symbol || operand.variable >= 0) continue;
      const auto* callee = find_function(operand.symbol);
      if (callee == nullptr || callee->declared_only) {
        throw PtxError(fmt::format("{}: the function {} has no body, called in '{}'",
                                   place_of(module_, instruction.line), operand.symbol, instruction.text));
      }
      visit(*callee, order, depth + 1);
    }
  }
  order.push_back(&function);
}

void Decoder::lay_out(const ptx::Function& function) {
  auto& frame = frames_[function.name];
  for (const auto& variable : function.variables) {
    if (variable.space == Space::shared) {
      const auto begin = round_up(program_.shared_bytes, std::max<std::uint64_t>(variable.align, 16));
      program_.shared.push_back({variable.name, begin, variable.bytes, false});
      program_.shared_bytes = begin + variable.bytes + red_zone;
      program_.declared_shared = round_up(program_.declared_shared, variable.align) + variable.bytes;
      frame.variables.push_back(begin);
    } else {
      const auto begin = round_up(program_.local_bytes, std::max<std::uint64_t>(variable.align, 16));
      program_.local_bytes = begin + variable.bytes;
      if (variable.space == Space::local) program_.declared_local += variable.bytes;
      frame.variables.push_back(begin);
    }
  }
  assign_registers(function, frame);
}

// Registers that are not alive at the same time share a row: PTX names each value anew, and a warp's arena should fit
// into the first-level cache. Lanes have places of their own, so divergence needs no care.
void Decoder::assign_registers(const ptx::Function& function, Frame& frame) {
  constexpr auto unused = std::numeric_limits<std::uint32_t>::max();
  struct Interval {
    std::uint32_t begin = unused;
    std::uint32_t end = 0;
  };
  std::vector<Interval> intervals(function.registers.size());
  std::vector<std::pair<std::uint32_t, std::uint32_t>> loops;  // first and last instruction
  const auto touch = [&](std::uint32_t reg, std::uint32_t at) {
    intervals[reg].begin = std::min(intervals[reg].begin, at);
    intervals[reg].end = std::max(intervals[reg].end, at);
  };
  const auto touch_operand = [&](const auto& self, const ptx::Operand& operand, std::uint32_t at) -> void {
    if (operand.kind == OperandKind::reg || (operand.kind == OperandKind::address && operand.base_is_register)) {
      touch(operand.reg, at);
    }
    if (operand.second >= 0) touch(static_cast<std::uint32_t>(operand.second), at);
    for (const auto& part : operand.parts) self(self, part, at);
  };
  for (std::uint32_t at = 0; at < function.instructions.size(); ++at) {
    const auto& instruction = function.instructions[at];
    if (instruction.guard >= 0) touch(static_cast<std::uint32_t>(instruction.guard), at);
    for (const auto& operand : instruction.operands) {
      touch_operand(touch_operand, operand, at);
      if (operand.kind == OperandKind::label && instruction.opcode == "bra" && operand.integer <= at) {
        loops.emplace_back(static_cast<std::uint32_t>(operand.integer), at);
      }
    }
  }
  for (const auto& table : function.branch_tables) {
    for (const auto target : table) {
      loops.emplace_back(target, static_cast<std::uint32_t>(function.instructions.size()));
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (auto& interval : intervals) {
      if (interval.begin == unused) continue;
      for (const auto& [first, last] : loops) {
        if (interval.begin < first && interval.end >= first && interval.end < last) {
          interval.end = last;
          changed = true;
        }
      }
    }
  }
  // A register whose first appearance inside a loop reads it carries a value around; its first operand is the result.
  for (std::uint32_t reg = 0; reg < intervals.size(); ++reg) {
    auto& interval = intervals[reg];
    if (interval.begin == unused) continue;
    const auto& first_use = function.instructions[interval.begin];
    const bool defined = first_use.guard < 0 && !first_use.operands.empty() &&
                         (first_use.operands[0].kind == OperandKind::reg ? first_use.operands[0].reg == reg
                                                                         : !first_use.operands[0].parts.empty());
    if (defined) continue;
    for (const auto& [first, last] : loops) {
      if (interval.begin >= first && interval.begin <= last) {
        interval.begin = std::min(interval.begin, first);
        interval.end = std::max(interval.end, last);
      }
    }
  }
  std::vector<std::uint32_t> order;
  for (std::uint32_t reg = 0; reg < intervals.size(); ++reg) {
    if (intervals[reg].begin != unused) order.push_back(reg);
  }
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return intervals[a].begin < intervals[b].begin; });
  frame.registers.assign(function.registers.size(), 0);
  std::map<unsigned, std::vector<std::uint32_t>> free_rows;
  std::multimap<std::uint32_t, std::uint32_t> ends;  // end -> register
  std::uint32_t words = 0;
  for (const auto reg : order) {
    while (!ends.empty() && ends.begin()->first < intervals[reg].begin) {
      const auto done = ends.begin()->second;
      const auto bytes = row_bytes(function.registers[done].type);
      free_rows[bytes].push_back(frame.registers[done]);
      words -= bytes / 128;
      ends.erase(ends.begin());
    }
    const auto bytes = row_bytes(function.registers[reg].type);
    auto& rows = free_rows[bytes];
    if (rows.empty()) {
      frame.registers[reg] = allocate(bytes);
    } else {
      frame.registers[reg] = rows.back();
      rows.pop_back();
    }
    words += bytes / 128;
    program_.live_registers = std::max(program_.live_registers, words);
    ends.emplace(intervals[reg].end, reg);
  }
}

void Decoder::append(Encoder& encoder, SpecialFunction special) {
  const auto& source = encoder.source();
  auto& frame = frames_.at(current_->name);
  if (source.guard >= 0) {
    encoder.out.guard = frame.registers[static_cast<std::size_t>(source.guard)];
    encoder.out.guard_negated = source.guard_negated;
  }
  encoder.out.number = static_cast<std::uint32_t>(program_.code.size());
  program_.code.push_back(encoder.out);
  std::string opcode = source.opcode;
  for (const auto& modifier : source.modifiers) opcode += "." + modifier;
  const auto file = source.line.file < module_.files.size() ? module_.files[source.line.file] : std::string();
  program_.sources.push_back({source.line, file, source.text, std::move(opcode), special});
}

void Decoder::decode_control(const ptx::Function& function, const ptx::Instruction& source) {
  Encoder encoder(*this, function, source);
  const auto place = static_cast<std::uint32_t>(program_.code.size());
  encoder.take("uni");
  if (source.opcode == "bra") {
    if (encoder.size() != 1 || encoder.operand(0).kind != OperandKind::label) encoder.fail("a label was expected");
    encoder.out.run = branch;
    fixups_.push_back({place, &function, static_cast<std::uint32_t>(encoder.operand(0).integer)});
  } else if (source.opcode == "brx") {
    encoder.take("idx");
    if (encoder.size() != 2 || encoder.operand(1).kind != OperandKind::label) encoder.fail("a table was expected");
    const auto& table = function.branch_tables.at(static_cast<std::size_t>(encoder.operand(1).integer));
    encoder.out.run = branch_indexed;
    encoder.out.operand[0] = encoder.row(0, Type::u32);
    encoder.out.immediate = static_cast<std::int64_t>(table.size());
    // The entries follow as branches of their own, which no lane runs into.
    encoder.finish();
    append(encoder, SpecialFunction::none);
    for (const auto target : table) {
      Encoder entry(*this, function, source);
      entry.out.run = branch;
      fixups_.push_back({static_cast<std::uint32_t>(program_.code.size()), &function, target});
      append(entry, SpecialFunction::none);
    }
    return;
  } else if (source.opcode == "call") {
    decode_call(encoder);
    return;
  } else {
    encoder.out.run = source.opcode == "exit" || function.entry ? leave : give_back;
  }
  encoder.finish();
  append(encoder, SpecialFunction::none);
}

// call (results), name, (arguments): the arguments' bytes are copied into the callee's parameters, and afterwards its
// results' into the caller's. A function calls no function that calls it, so each has one frame per lane.
void Decoder::decode_call(Encoder& encoder) {
  std::size_t at = 0;
  const ptx::Operand* results = nullptr;
  if (encoder.operand(0).kind == OperandKind::vector) {
    results = &encoder.operand(0);
    at = 1;
  }
  const auto* callee = find_function(encoder.operand(at).symbol);
  if (callee == nullptr) encoder.fail("the called function does not exist");
  const auto& frame = frames_.at(callee->name);
  const auto copy = [&](const ptx::Operand& operand, std::uint32_t variable, bool into_callee) {
    Encoder move(*this, *current_, encoder.source());
    if (operand.kind != OperandKind::symbol || operand.variable < 0) encoder.fail("an argument is no .param variable");
    const auto& parameter = callee->variables[variable];
    const auto outer = frames_.at(current_->name).variables[static_cast<std::size_t>(operand.variable)];
    const auto inner = frame.variables[variable];
    move.out.run = copy_parameter;
    move.out.operand[0] = static_cast<std::uint32_t>(into_callee ? inner : outer);
    move.out.operand[1] = static_cast<std::uint32_t>(into_callee ? outer : inner);
    move.out.immediate = static_cast<std::int64_t>(parameter.bytes);
    append(move, SpecialFunction::none);
  };
  if (encoder.size() > at + 1) {
    const auto& arguments = encoder.operand(at + 1).parts;
    if (arguments.size() != callee->parameters.size()) encoder.fail("another number of arguments");
    for (std::size_t i = 0; i < arguments.size(); ++i) copy(arguments[i], callee->parameters[i], true);
  }
  encoder.out.run = call_function;
  calls_.emplace_back(static_cast<std::uint32_t>(program_.code.size()), callee);
  encoder.finish();
  append(encoder, SpecialFunction::none);
  if (results != nullptr) {
    for (std::size_t i = 0; i < results->parts.size(); ++i) copy(results->parts[i], callee->results.at(i), false);
  }
}

void Decoder::decode_body(const ptx::Function& function) {
  current_ = &function;
  auto& frame = frames_.at(function.name);
  frame.begin = static_cast<std::uint32_t>(program_.code.size());
  for (const auto& source : function.instructions) {
    frame.places.push_back(static_cast<std::uint32_t>(program_.code.size()));
    if (source.opcode == "bra" || source.opcode == "brx" || source.opcode == "call" || source.opcode == "ret" ||
        source.opcode == "exit") {
      decode_control(function, source);
      continue;
    }
    Encoder encoder(*this, function, source);
    const auto family = families().find(source.opcode);
    if (family == families().end()) encoder.fail(fmt::format("unknown instruction {}", source.opcode));
    family->second(encoder);
    encoder.finish();
    append(encoder, encoder.special);
  }
  frame.places.push_back(static_cast<std::uint32_t>(program_.code.size()));
  // A body that ends without ret ends there.
  static const ptx::Instruction end = [] {
    ptx::Instruction instruction;
    instruction.opcode = "ret";
    instruction.text = "ret";
    return instruction;
  }();
  decode_control(function, end);
}

Program Decoder::decode(const ptx::Function& entry) {
  program_ = {};
  frames_.clear();
  constants_.clear();
  specials_.clear();
  sinks_.clear();
  fixups_.clear();
  calls_.clear();
  program_.name = entry.name;
  program_.arena_bytes = 64;  // offset 0 means none
  program_.shared_bytes = shared_begin;
  program_.max_threads = entry.max_threads != 0 ? entry.max_threads : 1024;
  program_.cluster = entry.cluster;

  std::vector<const ptx::Function*> order;
  visit(entry, order, 0);
  for (const auto& variable : module_.variables) {
    if (variable.space != Space::shared || variable.dynamic) continue;
    const auto begin = round_up(program_.shared_bytes, std::max<std::uint64_t>(variable.align, 16));
    program_.shared.push_back({variable.name, begin, variable.bytes, false});
    program_.shared_bytes = begin + variable.bytes + red_zone;
    program_.declared_shared = round_up(program_.declared_shared, variable.align) + variable.bytes;
  }
  for (const auto* function : order) lay_out(*function);
  for (const auto parameter : entry.parameters) {
    const auto& variable = entry.variables[parameter];
    const auto offset = round_up(program_.parameter_bytes, std::max(variable.align, 1U));
    program_.parameters.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(variable.bytes)});
    program_.parameter_bytes = static_cast<std::uint32_t>(offset + variable.bytes);
    frames_.at(entry.name).variables[parameter] = param_window + offset;
  }
  // All dynamic arrays start at one address, after the static ones, aligned to what any vector access needs.
  program_.shared_bytes = round_up(program_.shared_bytes, 1024);
  for (const auto& variable : module_.variables) {
    if (variable.space == Space::shared && variable.dynamic) {
      program_.shared.push_back({variable.name, program_.shared_bytes, 0, true});
    }
  }
  for (const auto* function : order) decode_body(*function);
  program_.entry = frames_.at(entry.name).begin;
  for (const auto& fixup : fixups_) {
    program_.code[fixup.instruction].target = frames_.at(fixup.function->name).places.at(fixup.target);
  }
  for (const auto& [instruction, callee] : calls_) program_.code[instruction].target = frames_.at(callee->name).begin;
  program_.arena_bytes = static_cast<std::uint32_t>(round_up(program_.arena_bytes + 64, 64));
  return std::move(program_);
}

}  // namespace tigon::emulator
