// Structure and memory of a lowered nest in CUDA C++.
#include "codegen/cuda/printer.hpp"

#include <fmt/format.h>

#include "codegen/cuda/printer_state.hpp"
#include "dsl/printable.hpp"
#include "tigon/error.hpp"

namespace tigon::cuda {

using lower::Block;
using lower::Code;
using lower::Instruction;
using lower::ValueId;
using lower::VariableId;

namespace {

constexpr std::size_t longest_expression = 96;  // characters; longer ones get a name and a line of their own

// Words of C++ and CUDA that a name may not be.
bool is_reserved(const std::string& name) {
  static const std::set<std::string, std::less<>> words = [] {
    constexpr std::string_view list =
        "int float double bool char short long unsigned signed const auto for if else while do switch case return "
        "break continue struct class template this new delete void using static extern true false sizeof union enum "
        "default operator public private protected namespace register inline typename throw try catch volatile goto "
        "friend and or not xor bitand bitor compl export virtual asm alignas alignof constexpr nullptr wchar_t "
        "explicit mutable typedef typeid threadIdx blockIdx blockDim gridDim warpSize";
    std::set<std::string, std::less<>> result;
    for (std::size_t start = 0; start < list.size();) {
      const std::size_t end = std::min(list.find(' ', start), list.size());
      result.emplace(list.substr(start, end - start));
      start = end + 1;
    }
    return result;
  }();
  return words.count(name) != 0;
}

}  // namespace

Printer::Printer(const lower::Lowered& lowered) : lowered_(lowered) {
  uses_.resize(lowered.values.size());
  spelled_.resize(lowered.values.size());
  origin_.resize(lowered.values.size(), 0);
  declared_.resize(lowered.variables.size(), false);
  variable_names_.resize(lowered.variables.size());
  for (const Instruction& constant : lowered.constants)
    spelled_[constant.result] = literal(constant.type.dtype, constant.number, constant.integer);
  taken_.emplace_back();
}

std::string Printer::unique(const std::string& hint) {
  std::string base;
  for (const char c : hint) {
    const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (word)
      base += c;
    else if (!base.empty() && base.back() != '_')
      base += '_';
  }
  while (!base.empty() && base.back() == '_') base.pop_back();
  if (base.empty() || (base[0] >= '0' && base[0] <= '9')) base = "v" + base;
  if (base.size() > dsl::longest_name) base.resize(dsl::longest_name);
  if (is_reserved(base) || is_function(base)) base += "_value";
  const auto free = [&](const std::string& name) {
    return std::none_of(taken_.begin(), taken_.end(), [&](const auto& scope) { return scope.count(name) != 0; });
  };
  std::string name = base;
  for (int number = 2; !free(name); ++number) name = fmt::format("{}_{}", base, number);
  taken_.back().insert(name);
  return name;
}

void Printer::count_uses(const Block& block) {
  const auto use = [&](ValueId v) {
    ++uses_[v].count;
    uses_[v].block = &block;
  };
  for (const lower::Item& item : block) {
    if (const auto* i = std::get_if<Instruction>(&item.node))
      for (const ValueId arg : i->args) use(arg);
    if (const auto* loop = std::get_if<lower::For>(&item.node)) {
      use(loop->begin);
      use(loop->end);
      ++uses_[loop->end].count;  // read again in each iteration
      count_uses(loop->body);
    }
    if (const auto* branch = std::get_if<lower::If>(&item.node)) {
      use(branch->condition);
      count_uses(branch->body);
      count_uses(branch->otherwise);
    }
    if (const auto* merge = std::get_if<lower::MergeState>(&item.node))
      for (const ValueId given : merge->given) use(given);
  }
}

std::string Printer::type_of(ValueId v) const {
  if (!type(v).pointer) return std::string(type_text(type(v).dtype));
  const loops::Parameter& p = lowered_.parameters[origin_[v]];
  return fmt::format("{}{}*", p.access == loops::Access::read ? "const " : "", type_text(p.dtype));
}

std::string Printer::run() {
  name_parameters();
  for (const lower::MergeFunction& merge : lowered_.merges) {
    const std::string element = lowered_.monoids[merge.monoid].name;
    merge_names_[{merge.monoid, static_cast<int>(merge.element)}] =
        unique(fmt::format("{}_{}", element, name(merge.element)));
  }
  count_uses(lowered_.body);
  print_block(lowered_.body);
  const std::string body = std::move(body_);
  const std::string merges = merge_functions();
  std::string text = head();
  used_.insert("i64");
  const auto meet = [&](DType dtype) {
    if (is_16_bit_float(dtype)) used_.insert(std::string(type_text(dtype)));
  };
  for (const loops::Parameter& p : lowered_.parameters) meet(p.dtype);
  for (const lower::Value& v : lowered_.values) meet(v.type.dtype);
  text += prelude_text(used_);
  text += merges;
  if (!lowered_.assertions.empty()) text += "\n";
  for (const std::string& assertion : lowered_.assertions) text += assertion + "\n";
  text += "\n" + signature() + "{\n";
  for (const std::string& shared : shared_) text += "  " + shared + "\n";
  return text + body + "}\n";
}

// A scope's statements; what is pending at its end nobody reads.
void Printer::print_block(const Block& block) {
  open_blocks_.push_back(&block);
  taken_.emplace_back();
  print(block);
  taken_.pop_back();
  open_blocks_.pop_back();
}

void Printer::print(const Block& block) {
  for (const lower::Item& item : block) {
    if (const auto* i = std::get_if<Instruction>(&item.node)) print(*i);
    if (const auto* loop = std::get_if<lower::For>(&item.node)) print(*loop);
    if (const auto* branch = std::get_if<lower::If>(&item.node)) print(*branch);
    if (const auto* merge = std::get_if<lower::MergeState>(&item.node)) print(*merge);
    if (const auto* exchange = std::get_if<lower::Exchange>(&item.node)) print(*exchange);
    if (const auto* comment = std::get_if<lower::Comment>(&item.node)) line("// " + comment->text);
  }
}

void Printer::settle(ValueId v, const Pending& value) {
  const std::string name = unique(lowered_.values[v].name);
  line(fmt::format("{}{} {} = {};", type(v).pointer ? "" : "const ", type_of(v),
                   type(v).pointer ? "const " + name : name, value.text));
  spelled_[v] = name;
}

void Printer::define(const Instruction& i, Pending value) {
  const Use& use = uses_[i.result];
  const bool stays = use.count == 1 && use.block == open_blocks_.back() && !lowered_.values[i.result].named &&
                     value.text.size() <= longest_expression;
  if (!stays) return settle(i.result, value);
  pending_[i.result] = std::move(value);
}

Printer::Pending Printer::take(ValueId v) {
  const auto found = pending_.find(v);
  if (found == pending_.end()) {
    Pending known;
    known.text = spelled_[v];
    if (known.text.starts_with('-')) known.precedence = by_prefix;
    return known;
  }
  Pending value = std::move(found->second);
  pending_.erase(found);
  return value;
}

std::string Printer::bracketed(const Pending& value, int precedence) {
  return value.precedence < precedence ? "(" + value.text + ")" : value.text;
}

std::string Printer::text(ValueId v, int precedence) { return bracketed(take(v), precedence); }

void Printer::flush_readers(VariableId variable) {
  for (auto it = pending_.begin(); it != pending_.end();) {
    if (it->second.reads.count(variable) == 0) {
      ++it;
      continue;
    }
    settle(it->first, it->second);
    it = pending_.erase(it);
  }
}

void Printer::flush_memory() {
  for (auto it = pending_.begin(); it != pending_.end();) {
    if (!it->second.reads_memory) {
      ++it;
      continue;
    }
    settle(it->first, it->second);
    it = pending_.erase(it);
  }
}

void Printer::flush_changing() {
  for (auto it = pending_.begin(); it != pending_.end();) {
    if (!it->second.reads_memory && it->second.reads.empty()) {
      ++it;
      continue;
    }
    settle(it->first, it->second);
    it = pending_.erase(it);
  }
}

void Printer::print(const lower::For& loop) {
  const std::string begin = text(loop.begin);
  const std::string end = text(loop.end, by_order + 1);
  flush_changing();
  taken_.emplace_back();
  const std::string index = unique(lowered_.values[loop.index].name);
  spelled_[loop.index] = index;
  if (loop.unroll == lower::For::Unroll::always) line("#pragma unroll");
  if (loop.unroll == lower::For::Unroll::never) line("#pragma unroll 1");
  line(fmt::format("for ({} {} = {}; {} < {}; {}) {{", type_of(loop.index), index, begin, index, end,
                   loop.step == 1 ? "++" + index : fmt::format("{} += {}", index, loop.step)));
  ++indent_;
  print_block(loop.body);
  --indent_;
  line("}");
  taken_.pop_back();
}

void Printer::print(const lower::If& branch) {
  const std::string condition = text(branch.condition);
  flush_changing();
  line(fmt::format("if ({}) {{", condition));
  ++indent_;
  print_block(branch.body);
  --indent_;
  if (!branch.otherwise.empty()) {
    line("} else {");
    ++indent_;
    print_block(branch.otherwise);
    --indent_;
  }
  line("}");
}

void Printer::print(const lower::MergeState& merge) {
  std::string args;
  for (const VariableId variable : merge.state) args += (args.empty() ? "" : ", ") + variable_names_[variable];
  for (const ValueId given : merge.given) args += ", " + text(given);
  for (const VariableId variable : merge.state) flush_readers(variable);
  line(fmt::format("merge_{}({});", merge_names_.at({merge.monoid, static_cast<int>(merge.element)}), args));
}

void Printer::print(const lower::Exchange& exchange) {
  const std::string& name = merge_names_.at({exchange.monoid, static_cast<int>(exchange.element)});
  const bool whole_block = exchange.team > 32;
  flush_changing();
  exchanges_.insert({name, whole_block});
  std::string args;
  for (const VariableId variable : exchange.state) args += (args.empty() ? "" : ", ") + variable_names_[variable];
  if (!whole_block) return line(fmt::format("warp_{}<{}>({});", name, exchange.team, args));
  for (const VariableId variable : exchange.state) {
    taken_.front().insert("");
    std::string shared = variable_names_[variable] + "_by_warp";
    for (int number = 2; !taken_.front().insert(shared).second; ++number)
      shared = fmt::format("{}_by_warp_{}", variable_names_[variable], number);
    shared_.push_back(fmt::format("__shared__ {} {}[{}];", type_text(lowered_.variables[variable].type.dtype), shared,
                                  exchange.team / 32));
    args += ", " + shared;
  }
  line(fmt::format("block_{}<{}>({});", name, exchange.team / 32, args));
}

std::string Printer::place(const Pending& address) {
  if (!address.row.empty()) return fmt::format("{}[{}]", address.row, address.offset);
  return "*" + bracketed(address, by_prefix);
}

// The pack that an instruction works on; its number in an array, if any, is argument `number_at`.
std::string Printer::variable_place(const Instruction& i, std::size_t number_at) {
  const std::string& name = variable_names_[i.payload];
  if (lowered_.variables[i.payload].count == 0) return name;
  return fmt::format("{}[{}]", name, text(i.args.at(number_at)));
}

void Printer::print(const Instruction& i) {
  const auto pack_text = [&](const lower::Variable& v) {
    used_.insert("pack");
    return fmt::format("pack<{}, {}>", type_text(v.type.dtype), v.pack);
  };
  switch (i.code) {
    case Code::constant:
      spelled_[i.result] = literal(i.type.dtype, i.number, i.integer);
      return;
    case Code::pointer_of:
      origin_[i.result] = i.payload;
      spelled_[i.result] = parameter_names_[i.payload];
      return;
    case Code::slot:
      spelled_[i.result] = slot_names_[i.payload];
      return;
    case Code::scalar:
      spelled_[i.result] = scalar_names_[i.payload];
      return;
    case Code::thread:
    case Code::block:
      return settle(i.result,
                    {i.code == Code::thread ? "static_cast<int>(threadIdx.x)" : "static_cast<int>(blockIdx.x)",
                     by_nothing,
                     {},
                     false});
    case Code::operation:
      return define(i, operation(i));
    case Code::cast:
      return define(i, conversion(i));
    case Code::address: {
      origin_[i.result] = origin_[i.args[0]];
      Pending base = take(i.args[0]);
      const Pending offset = take(i.args[1]);
      base.row = base.precedence == by_nothing ? base.text : "(" + base.text + ")";
      base.offset = offset.text;
      base.text = fmt::format("{} + {}", bracketed(base, by_sum), bracketed(offset, by_sum + 1));
      base.precedence = by_sum;
      join(base, offset);
      return define(i, std::move(base));
    }
    case Code::head_length: {
      used_.insert("head_length");
      Pending at = take(i.args[0]);
      const Pending limit = take(i.args[1]);
      at.text = fmt::format("head_length({}, {})", at.text, limit.text);
      at.precedence = by_nothing;
      join(at, limit);
      return define(i, std::move(at));
    }
    case Code::load: {
      Pending at = take(i.args[0]);
      Pending value;
      value.text = place(at);
      value.precedence = value.text[0] == '*' ? by_prefix : by_nothing;
      join(value, at);
      value.reads_memory = true;
      return define(i, std::move(value));
    }
    case Code::store: {
      const Pending value = take(i.args[0]);
      const Pending at = take(i.args[1]);
      flush_memory();
      return line(fmt::format("{} = {};", place(at), value.text));
    }
    case Code::read:
      return define(i, {variable_names_[i.payload], by_nothing, {i.payload}, false});
    case Code::write: {
      const std::string value = text(i.args[0]);
      flush_readers(i.payload);
      if (declared_[i.payload]) return line(fmt::format("{} = {};", variable_names_[i.payload], value));
      declared_[i.payload] = true;
      const lower::Variable& v = lowered_.variables[i.payload];
      variable_names_[i.payload] = unique(v.name);
      return line(fmt::format("{} {} = {};", type_text(v.type.dtype), variable_names_[i.payload], value));
    }
    case Code::declare: {
      const lower::Variable& v = lowered_.variables[i.payload];
      variable_names_[i.payload] = unique(v.name);
      declared_[i.payload] = true;
      const std::string array = v.count == 0 ? "" : fmt::format("[{}]", v.count);
      return line(fmt::format("{} {}{};", pack_text(v), variable_names_[i.payload], array));
    }
    case Code::load_pack: {
      used_.insert("load");
      const lower::Variable& v = lowered_.variables[i.payload];
      const std::string from = fmt::format("load<{}>({})", v.pack, text(i.args[0]));
      if (v.count != 0) {
        const std::string place = variable_place(i, 1);
        flush_readers(i.payload);
        return line(fmt::format("{} = {};", place, from));
      }
      variable_names_[i.payload] = unique(v.name);
      declared_[i.payload] = true;
      return line(fmt::format("const auto {} = {};", variable_names_[i.payload], from));
    }
    case Code::store_pack: {
      const std::string to = text(i.args[0]);
      const std::string from = variable_place(i, 1);
      const std::string_view function = i.streaming ? "store_streaming" : "store";
      used_.insert(std::string(function));
      flush_memory();
      return line(fmt::format("{}({}, {});", function, to, from));
    }
    case Code::element: {
      const std::string place = text(i.args[0]);
      return define(i, {fmt::format("{}.at[{}]", variable_place(i, 1), place), by_nothing, {i.payload}, false});
    }
    case Code::set_element: {
      const std::string value = text(i.args[0]);
      const std::string place = text(i.args[1]);
      const std::string pack = variable_place(i, 2);
      flush_readers(i.payload);
      return line(fmt::format("{}.at[{}] = {};", pack, place, value));
    }
    case Code::barrier:
      flush_changing();
      if (i.integer >= lowered_.threads) return line("__syncthreads();");
      if (i.integer == 32) return line("__syncwarp();");
      return line(fmt::format("__syncwarp({}u << (static_cast<int>(threadIdx.x) % 32 / {} * {}));",
                              (std::uint64_t{1} << i.integer) - 1, i.integer, i.integer));
    default:
      throw Error({.kind = ErrorKind::internal, .function = lowered_.name},
                  fmt::format("instruction {} has no spelling in CUDA", static_cast<int>(i.code)));
  }
}

CudaText print_cuda(const lower::Lowered& lowered) {
  std::string text = Printer(lowered).run();
  // FNV-1a: one name for one text, also where several kernels of a plan are called alike.
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  const std::string symbol = fmt::format("{}_{:06x}", lowered.name, hash >> 40);
  const std::string signature = "\n" + lowered.name + "(";
  const std::size_t at = text.rfind(signature);
  text.replace(at + 1, lowered.name.size(), symbol);
  return {std::move(text), symbol, lowered.threads};
}

}  // namespace tigon::cuda
