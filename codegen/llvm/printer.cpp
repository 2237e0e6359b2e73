// Structure and memory of a lowered nest in LLVM IR.
#include "codegen/llvm/printer.hpp"

#include <bit>

#include <fmt/format.h>

#include "codegen/llvm/printer_state.hpp"
#include "tigon/error.hpp"

namespace tigon::llvm {

using lower::Block;
using lower::Code;
using lower::Instruction;
using lower::Type;

namespace {

std::string_view register_text(DType dtype) {
  constexpr std::string_view names[] = {"i1", "i32", "i64", "i16", "i16", "float", "double"};
  return names[static_cast<int>(dtype)];
}

std::string overload(std::string_view element, int lanes) {
  const std::string name = element == "float" ? "f32" : element == "double" ? "f64" : std::string(element);
  return lanes == 1 ? name : fmt::format("v{}{}", lanes, name);
}

std::string vector_text(std::string_view element, int lanes) {
  return lanes == 1 ? std::string(element) : fmt::format("<{} x {}>", lanes, element);
}

std::string indices(int from, int count, int step) {
  std::string list;
  for (int i = 0; i < count; ++i) list += fmt::format("{}i32 {}", i == 0 ? "" : ", ", from + i * step);
  return fmt::format("<{} x i32> <{}>", count, list);
}

}  // namespace

std::string type_text(const Type& type) {
  return vector_text(type.pointer ? "ptr" : register_text(type.dtype), type.lanes);
}

std::string_view memory_text(DType dtype) { return dtype == DType::boolean ? "i8" : register_text(dtype); }

std::string literal(DType dtype, double number, std::int64_t integer) {
  if (dtype == DType::boolean) return integer != 0 ? "true" : "false";
  if (dtype == DType::bf16)
    return fmt::format("{}", static_cast<std::int16_t>(to_bf16(static_cast<float>(number)).bits));
  if (dtype == DType::f16) return fmt::format("{}", static_cast<std::int16_t>(to_f16(static_cast<float>(number)).bits));
  if (!is_floating(dtype)) return fmt::format("{}", integer);
  const double value = dtype == DType::f32 ? static_cast<double>(static_cast<float>(number)) : number;
  // Eighths below a million are exact in decimal; the rest is spelled by its bits.
  if (std::abs(value) < 1e6 && value * 8 == std::floor(value * 8))
    return fmt::format("{:.{}f}", value, value == std::floor(value) ? 1 : 3);
  return fmt::format("0x{:016X}", std::bit_cast<std::uint64_t>(value));
}

Printer::Printer(const lower::Lowered& lowered) : lowered_(lowered) {
  spelled_.resize(lowered.values.size());
  is_constant_.resize(lowered.values.size(), false);
  integers_.resize(lowered.values.size(), 0);
  for (std::size_t i = 0; i < lowered.values.size(); ++i) spelled_[i] = "%" + lowered.values[i].name;
  for (const Instruction& constant : lowered.constants) {
    if (constant.code == Code::first || constant.code == Code::last) {
      spelled_[constant.result] = constant.code == Code::first ? "%first" : "%last";
      continue;
    }
    spelled_[constant.result] = literal(constant.type.dtype, constant.number, constant.integer);
    is_constant_[constant.result] = true;
    integers_[constant.result] = constant.integer;
  }
}

std::string Printer::head() const {
  std::string text = "; " + lowered_.name + "\n;\n";
  if (!lowered_.formula.empty()) text += ";   " + lowered_.formula + "\n;\n";
  for (const std::string& note : lowered_.notes) text += "; " + note + "\n";
  for (std::size_t id = 0; id < lowered_.parameters.size(); ++id) {
    const loops::Parameter& p = lowered_.parameters[id];
    std::string axes;
    for (const std::uint16_t axis : p.axes) axes += (axes.empty() ? "" : ", ") + lowered_.axes.at(axis).name;
    constexpr std::string_view access[] = {"reads", "writes", "updates"};
    text += fmt::format(";   cell {:<3} {} {}: {}[{}]{}\n", id, access[static_cast<int>(p.access)], p.name,
                        name(p.dtype), axes, p.comment.empty() ? "" : "  " + p.comment);
  }
  for (std::size_t id = 0; id < lowered_.slots.size(); ++id) {
    const loops::Slot& s = lowered_.slots[id];
    std::string what;
    switch (s.kind) {
      case loops::SlotKind::extent:
        what = "extent of " + lowered_.axes.at(s.axis).name;
        break;
      case loops::SlotKind::origin:
        what = "origin of " + lowered_.axes.at(s.axis).name;
        break;
      case loops::SlotKind::global_extent:
        what = "whole extent of " + lowered_.axes.at(s.axis).name;
        break;
      case loops::SlotKind::stride:
        what = fmt::format("stride of {}, dimension {}", lowered_.parameters.at(s.parameter).name, s.dimension);
        break;
      case loops::SlotKind::partitions:
        what = fmt::format("partitions of part {}", s.part);
        break;
    }
    text += fmt::format(";   cell {:<3} {}\n", lowered_.layout.slot_cell(static_cast<std::uint32_t>(id)), what);
  }
  for (std::size_t id = 0; id < lowered_.scalars.size(); ++id)
    text += fmt::format(";   cell {:<3} {}: {}\n", lowered_.layout.scalar_cell(static_cast<std::uint32_t>(id)),
                        lowered_.scalars[id].name, name(lowered_.scalars[id].dtype));
  return text + "\n";
}

std::string Printer::run() {
  print(lowered_.body);
  std::string text = head();
  text += fmt::format(
      "define void @{}(ptr noalias readonly %parameters, i64 %first, i64 %last, ptr %scratch) #0 {{\nentry:\n",
      lowered_.name);
  for (const lower::Variable& v : lowered_.variables)
    text += fmt::format("  %{} = alloca {}\n", v.name, type_text(v.type));
  text += body_ + "  ret void\n}\n";
  std::set<std::string> declarations = declarations_;
  for (const std::string& declaration : prelude_declarations(prelude_)) declarations.insert(declaration);
  if (!declarations.empty()) text += "\n";
  for (const std::string& declaration : declarations) text += declaration + "\n";
  const std::string definitions = prelude_definitions(prelude_);
  if (!definitions.empty()) text += "\n" + definitions;
  // Without it LLVM from 18 on ends the process where one round of instcombine does not settle everything.
  text += "\nattributes #0 = { nounwind \"instcombine-no-verify-fixpoint\" }\n";
  if (nontemporal_) text += "\n!0 = !{i32 1}\n";
  return text;
}

void Printer::start(const std::string& label) {
  body_ += label + ":\n";
  label_ = label;
}

void Printer::print(const Block& block) {
  for (const lower::Item& item : block) {
    if (const auto* i = std::get_if<Instruction>(&item.node)) print(*i);
    if (const auto* loop = std::get_if<lower::For>(&item.node)) print(*loop);
    if (const auto* branch = std::get_if<lower::If>(&item.node)) print(*branch);
    if (const auto* comment = std::get_if<lower::Comment>(&item.node)) body_ += "\n  ; " + comment->text + "\n";
  }
}

void Printer::print(const lower::For& loop) {
  const std::string index = lowered_.values[loop.index].name;
  const std::string before = label_;
  line(fmt::format("%{}.any = icmp slt i64 {}, {}", index, text(loop.begin), text(loop.end)));
  line(fmt::format("br i1 %{0}.any, label %{0}.loop, label %{0}.done", index));
  start(index + ".loop");
  line(fmt::format("%{0} = phi i64 [ {1}, %{2} ], [ %{0}.next, %{0}.latch ]", index, text(loop.begin), before));
  print(loop.body);
  line(fmt::format("br label %{}.latch", index));
  start(index + ".latch");
  line(fmt::format("%{0}.next = add nsw i64 %{0}, {1}", index, loop.step));
  line(fmt::format("%{0}.more = icmp slt i64 %{0}.next, {1}", index, text(loop.end)));
  line(fmt::format("br i1 %{0}.more, label %{0}.loop, label %{0}.done", index));
  start(index + ".done");
}

void Printer::print(const lower::If& branch) {
  const std::string base = fmt::format("if.{}", branches_++);
  const bool two = !branch.otherwise.empty();
  line(
      fmt::format("br i1 {}, label %{}.then, label %{}.{}", text(branch.condition), base, base, two ? "else" : "done"));
  start(base + ".then");
  print(branch.body);
  line(fmt::format("br label %{}.done", base));
  if (two) {
    start(base + ".else");
    print(branch.otherwise);
    line(fmt::format("br label %{}.done", base));
  }
  start(base + ".done");
}

std::string Printer::splat(const Type& type, const std::string& element) {
  const std::string scalar = type_text({type.dtype, 1, type.pointer});
  return fmt::format("shufflevector <1 x {0}> <{0} {1}>, <1 x {0}> poison, <{2} x i32> zeroinitializer", scalar,
                     element, type.lanes);
}

std::string Printer::constant(const Type& type, double number, std::int64_t integer) {
  std::string one = literal(type.dtype, number, integer);
  if (type.lanes == 1) return one;
  std::string list;
  for (int i = 0; i < type.lanes; ++i)
    list += fmt::format("{}{} {}", i == 0 ? "" : ", ", register_text(type.dtype), one);
  return "<" + list + ">";
}

void Printer::print_cell(const Instruction& i, std::uint32_t cell) {
  const std::string& result = text(i.result);
  const std::string_view loaded = i.type.pointer ? std::string_view("ptr") : memory_text(i.type.dtype);
  line(fmt::format("{}.cell = getelementptr i64, ptr %parameters, i64 {}", result, cell));
  if (i.type.dtype == DType::boolean && !i.type.pointer) {
    line(fmt::format("{}.byte = load i8, ptr {}.cell, align 8", result, result));
    line(fmt::format("{} = icmp ne i8 {}.byte, 0", result, result));
    return;
  }
  line(fmt::format("{} = load {}, ptr {}.cell, align 8", result, loaded, result));
}

void Printer::print(const Instruction& i) {
  const std::string result = i.result == lower::no_value ? std::string() : text(i.result);
  const std::string of = type_text(i.type);
  switch (i.code) {
    case Code::constant:
      line(fmt::format("{} = {}", result, splat(i.type, literal(i.type.dtype, i.number, i.integer))));
      return;
    case Code::first:
    case Code::last:
      return;  // the entry's arguments
    case Code::pointer_of:
    case Code::pointer_bits:
      return print_cell(i, lowered_.layout.pointer_cell(i.payload));
    case Code::slot:
      return print_cell(i, lowered_.layout.slot_cell(i.payload));
    case Code::scalar:
      return print_cell(i, lowered_.layout.scalar_cell(i.payload));
    case Code::scratch:
      line(fmt::format("{} = getelementptr i8, ptr %scratch, i64 {}", result, i.integer));
      return;
    case Code::lane_numbers: {
      std::string list;
      for (int lane = 0; lane < i.type.lanes; ++lane)
        list += fmt::format("{}{} {}", lane == 0 ? "" : ", ", register_text(i.type.dtype), lane);
      line(fmt::format("{} = add {} <{}>, zeroinitializer", result, of, list));
      return;
    }
    case Code::operation:
      return print_operation(i);
    case Code::cast:
      return print_cast(i);
    case Code::broadcast: {
      const Type& from = type(i.args[0]);
      line(fmt::format("{}.one = insertelement {} poison, {} {}, i32 0", result, of, type_text(from), text(i.args[0])));
      line(fmt::format("{} = shufflevector {} {}.one, {} poison, <{} x i32> zeroinitializer", result, of, result, of,
                       i.type.lanes));
      return;
    }
    case Code::slice:
      if (i.type.lanes == 1)
        line(fmt::format("{} = extractelement {}, i32 {}", result, typed(i.args[0]), i.integer));
      else
        line(fmt::format("{} = shufflevector {}, {} poison, {}", result, typed(i.args[0]), type_text(type(i.args[0])),
                         indices(static_cast<int>(i.integer), i.type.lanes, 1)));
      return;
    case Code::reverse:
      line(fmt::format("{} = shufflevector {}, {} poison, {}", result, typed(i.args[0]), of,
                       indices(i.type.lanes - 1, i.type.lanes, -1)));
      return;
    case Code::address:
      line(fmt::format("{} = getelementptr {}, {}, {}", result, memory_text(i.memory), typed(i.args[0]),
                       typed(i.args[1])));
      return;
    case Code::read:
      line(fmt::format("{} = load {}, ptr %{}", result, of, lowered_.variables[i.payload].name));
      return;
    case Code::write:
      line(fmt::format("store {}, ptr %{}", typed(i.args[0]), lowered_.variables[i.payload].name));
      return;
    case Code::load:
    case Code::gather:
    case Code::store:
    case Code::scatter:
      return print_memory(i);
    default:
      throw Error({.kind = ErrorKind::internal, .function = lowered_.name},
                  fmt::format("instruction {} is for targets with threads", static_cast<int>(i.code)));
  }
}

void Printer::print_memory(const Instruction& i) {
  const bool reads = i.code == Code::load || i.code == Code::gather;
  const int lanes = i.type.lanes;
  const std::string element(memory_text(i.memory));
  const std::string whole = vector_text(element, lanes);
  const bool truth = i.memory == DType::boolean;
  const int align = i.alignment != 0 ? i.alignment : size_of(i.memory);
  const std::string pointer_type = vector_text("ptr", i.code == Code::load || i.code == Code::store ? 1 : lanes);
  const std::string mask_type = vector_text("i1", lanes);
  const std::size_t mask_at = reads ? 1 : 2;
  const bool masked = i.args.size() > mask_at;
  std::string mask =
      masked ? text(i.args[mask_at]) : constant({DType::boolean, static_cast<std::uint16_t>(lanes)}, 0, 1);
  if (reads) {
    const std::string result = text(i.result);
    const std::string name = truth ? result + ".byte" : result;
    const std::string from = fmt::format("{} {}", pointer_type, text(i.args[0]));
    if (i.code == Code::load && !masked) {
      line(fmt::format("{} = load {}, {}, align {}", name, whole, from, align));
    } else {
      const std::string callee = i.code == Code::load
                                     ? fmt::format("@llvm.masked.load.{}.p0", overload(element, lanes))
                                     : fmt::format("@llvm.masked.gather.{}.v{}p0", overload(element, lanes), lanes);
      declarations_.insert(
          fmt::format("declare {} {}({}, i32, {}, {})", whole, callee, pointer_type, mask_type, whole));
      line(fmt::format("{} = call {} {}({}, i32 {}, {} {}, {} zeroinitializer)", name, whole, callee, from, align,
                       mask_type, mask, whole));
    }
    if (truth) line(fmt::format("{} = icmp ne {} {}, {}", result, whole, name, lanes == 1 ? "0" : "zeroinitializer"));
    return;
  }
  std::string value = text(i.args[0]);
  if (truth) {
    const std::string byte = fmt::format("%byte.{}", bytes_++);  // a store has no result to name it after
    line(fmt::format("{} = zext {} to {}", byte, typed(i.args[0]), whole));
    value = byte;
  }
  const std::string to = fmt::format("{} {}", pointer_type, text(i.args[1]));
  if (i.code == Code::store && !masked) {
    nontemporal_ = nontemporal_ || i.streaming;
    line(fmt::format("store {} {}, {}, align {}{}", whole, value, to, align, i.streaming ? ", !nontemporal !0" : ""));
    return;
  }
  const std::string callee = i.code == Code::store
                                 ? fmt::format("@llvm.masked.store.{}.p0", overload(element, lanes))
                                 : fmt::format("@llvm.masked.scatter.{}.v{}p0", overload(element, lanes), lanes);
  declarations_.insert(fmt::format("declare void {}({}, {}, i32, {})", callee, whole, pointer_type, mask_type));
  line(fmt::format("call void {}({} {}, {}, i32 {}, {} {})", callee, whole, value, to, align, mask_type, mask));
}

std::string print_llvm(const lower::Lowered& lowered) { return Printer(lowered).run(); }

}  // namespace tigon::llvm
