// Parses the body of a function: scopes with their registers and variables, labels, and instructions.
#include "runtime/emulator/ptx_body.hpp"

#include <array>
#include <map>
#include <unordered_map>

namespace tigon::emulator::ptx {

namespace {

// Names that mean something in a scope; an inner scope, which inline assembly opens, hides the outer one's.
struct Scope {
  std::uint32_t parent = 0;
  std::unordered_map<std::string, std::uint32_t> registers;
  std::unordered_map<std::string, std::uint32_t> variables;
  std::unordered_map<std::string, std::uint32_t> labels;  // the number of the instruction that follows
  std::unordered_map<std::string, std::vector<std::string>> tables;
};

class BodyParser {
 public:
  BodyParser(Lexer& lexer, Function& function) : lexer_(lexer), function_(function) {
    scopes_.emplace_back();
    for (std::uint32_t v = 0; v < function.variables.size(); ++v) scopes_[0].variables[function.variables[v].name] = v;
  }

  void parse() {
    lexer_.expect("{");
    int depth = 1;
    while (depth > 0) {
      const auto& lexeme = lexer_.peek();
      if (lexer_.take("{")) {
        scopes_.push_back(Scope{scope_, {}, {}, {}, {}});
        scope_ = static_cast<std::uint32_t>(scopes_.size() - 1);
        ++depth;
      } else if (lexer_.take("}")) {
        scope_ = scopes_[scope_].parent;
        --depth;
      } else if (lexer_.take(";")) {
        continue;
      } else if (lexeme.kind == LexemeKind::word && lexeme.text[0] == '.') {
        directive();
      } else {
        instruction_or_label();
      }
    }
    resolve_labels();
  }

 private:
  void directive() {
    const auto word = lexer_.next().text;
    if (word == ".reg") {
      registers();
    } else if (word == ".loc") {
      location();
    } else if (word == ".pragma") {
      lexer_.expect(LexemeKind::string);
      lexer_.expect(";");
    } else if (word == ".shared" || word == ".local" || word == ".param" || word == ".global" || word == ".const") {
      const auto space = word == ".shared" ? Space::shared : word == ".local" ? Space::local : Space::param;
      if (word == ".global" || word == ".const") lexer_.fail("a global variable inside a function");
      do {
        const auto number = static_cast<std::uint32_t>(function_.variables.size());
        function_.variables.push_back(parse_variable(lexer_, space, false));
        scopes_[scope_].variables[function_.variables.back().name] = number;
      } while (lexer_.take(","));
      lexer_.expect(";");
    } else {
      lexer_.fail(fmt::format("unknown directive '{}'", word));
    }
  }

  // .reg .b32 %r<91>, x;
  void registers() {
    const auto type_word = lexer_.expect(LexemeKind::word).text;
    const auto type = parse_type(type_word.substr(1));
    if (type == Type::none) lexer_.fail(fmt::format("unknown type '{}' of a register", type_word));
    do {
      const std::string name(lexer_.expect(LexemeKind::word).text);
      if (lexer_.take("<")) {
        const auto count = parse_number(lexer_.expect(LexemeKind::number).text).integer;
        lexer_.expect(">");
        for (std::int64_t i = 0; i < count; ++i) declare(name + std::to_string(i), type);
      } else {
        declare(name, type);
      }
    } while (lexer_.take(","));
    lexer_.expect(";");
  }

  void declare(std::string name, Type type) {
    scopes_[scope_].registers[name] = static_cast<std::uint32_t>(function_.registers.size());
    function_.registers.push_back({std::move(name), type});
  }

  std::uint32_t number() {
    return static_cast<std::uint32_t>(parse_number(lexer_.expect(LexemeKind::number).text).integer);
  }

  // .loc 1 6 3, function_name $L__info_string0, inlined_at 1 7 3
  void location() {
    const auto read_place = [&] {
      const auto file = number();
      const auto line = number();
      return Place{file, line, number()};
    };
    const auto place = read_place();
    line_ = {};
    line_.file = place[0];
    line_.line = place[1];
    while (lexer_.take(",")) {
      if (lexer_.take("function_name")) {
        lexer_.next();
        if (lexer_.take("+")) number();
      } else {
        lexer_.expect("inlined_at");
        // The call may itself stand in an inlined function; the kernel's own line is the one that helps.
        const auto call = read_place();
        const auto outer = inlined_.find(call);
        line_.inlined_line = outer == inlined_.end() ? call[1] : outer->second;
        inlined_[place] = line_.inlined_line;
      }
    }
  }

  void instruction_or_label() {
    Instruction instruction;
    instruction.line = line_;
    instruction.line.ptx_line = lexer_.peek().line;
    instruction.scope = scope_;
    const char* begin = lexer_.position();
    if (lexer_.take("@")) {
      instruction.guard_negated = lexer_.take("!");
      const auto name = lexer_.expect(LexemeKind::word).text;
      std::uint32_t guard = 0;
      if (!find_register(name, guard)) lexer_.fail(fmt::format("the predicate {} is not declared", name));
      instruction.guard = static_cast<std::int32_t>(guard);
    }
    const auto word = lexer_.expect(LexemeKind::word).text;
    if (lexer_.take(":")) {
      label(std::string(word));
      return;
    }
    split_opcode(word, instruction);
    while (!lexer_.take(";")) {
      instruction.operands.push_back(operand());
      if (!lexer_.take(",") && lexer_.peek().text != ";") {
        // The bracket of a call's result is followed by a comma, everything else by a comma or the end.
        lexer_.fail(fmt::format("'{}' after an operand of '{}'", lexer_.peek().text, word));
      }
    }
    instruction.text = std::string(begin, lexer_.position());
    const auto end = instruction.text.find(';');
    instruction.text.resize(end == std::string::npos ? instruction.text.size() : end);
    function_.instructions.push_back(std::move(instruction));
  }

  void label(std::string name) {
    if (lexer_.take(".branchtargets")) {
      auto& table = scopes_[scope_].tables[name];
      do {
        table.emplace_back(lexer_.expect(LexemeKind::word).text);
      } while (lexer_.take(","));
      lexer_.expect(";");
      return;
    }
    if (lexer_.peek().text == ".callprototype" || lexer_.peek().text == ".calltargets") {
      lexer_.fail("calls through pointers are not supported");
    }
    scopes_[scope_].labels[std::move(name)] = static_cast<std::uint32_t>(function_.instructions.size());
  }

  static void split_opcode(std::string_view word, Instruction& instruction) {
    const auto dot = word.find('.');
    instruction.opcode = word.substr(0, dot);
    auto at = dot;
    while (at != std::string_view::npos) {
      const auto next = word.find('.', at + 1);
      instruction.modifiers.emplace_back(word.substr(at + 1, next == std::string_view::npos ? next : next - at - 1));
      at = next;
    }
  }

  bool find_register(std::string_view name, std::uint32_t& reg) const {
    const std::string key(name);
    for (auto scope = scope_;; scope = scopes_[scope].parent) {
      const auto found = scopes_[scope].registers.find(key);
      if (found != scopes_[scope].registers.end()) {
        reg = found->second;
        return true;
      }
      if (scope == 0) return false;
    }
  }

  std::int32_t find_variable(std::string_view name) const {
    const std::string key(name);
    for (auto scope = scope_;; scope = scopes_[scope].parent) {
      const auto found = scopes_[scope].variables.find(key);
      if (found != scopes_[scope].variables.end()) return static_cast<std::int32_t>(found->second);
      if (scope == 0) return -1;
    }
  }

  std::vector<Operand> list(std::string_view close) {
    std::vector<Operand> parts;
    while (!lexer_.take(close)) {
      parts.push_back(operand());
      lexer_.take(",");
    }
    return parts;
  }

  Operand literal(bool negative) {
    const auto value = parse_number(lexer_.expect(LexemeKind::number).text);
    Operand operand;
    operand.kind = value.is_float ? OperandKind::floating : OperandKind::integer;
    operand.integer = value.integer;
    operand.floating = negative ? -value.floating : value.floating;
    operand.literal_bytes = value.literal_bytes;
    if (negative && value.literal_bytes == 4) operand.integer ^= 0x80000000LL;
    if (negative && value.literal_bytes == 8) operand.integer ^= std::numeric_limits<std::int64_t>::min();
    if (negative && !value.is_float) {
      operand.integer = static_cast<std::int64_t>(std::uint64_t{0} - static_cast<std::uint64_t>(value.integer));
    }
    return operand;
  }

  Operand operand() {
    Operand operand;
    if (lexer_.take("{")) {
      operand.kind = OperandKind::vector;
      operand.parts = list("}");
      return operand;
    }
    if (lexer_.take("(")) {
      operand.kind = OperandKind::vector;
      operand.parts = list(")");
      return operand;
    }
    if (lexer_.take("[")) return address();
    if (lexer_.take("-")) return literal(true);
    if (lexer_.peek().kind == LexemeKind::number) return literal(false);
    operand.negated = lexer_.take("!");
    const auto word = lexer_.expect(LexemeKind::word).text;
    name(word, operand);
    if (operand.kind == OperandKind::reg && lexer_.take("|")) {
      const auto second = lexer_.expect(LexemeKind::word).text;
      std::uint32_t reg = 0;
      if (second == "_") {
        operand.second = -2;
      } else if (find_register(second, reg)) {
        operand.second = static_cast<std::int32_t>(reg);
      } else {
        lexer_.fail(fmt::format("the register {} is not declared", second));
      }
    } else if (operand.kind == OperandKind::symbol && lexer_.take("+")) {
      operand.integer = parse_number(lexer_.expect(LexemeKind::number).text).integer;
    }
    return operand;
  }

  void name(std::string_view word, Operand& operand) {
    if (word == "_") {
      operand.kind = OperandKind::sink;
    } else if (find_register(word, operand.reg)) {
      operand.kind = OperandKind::reg;
    } else if (word[0] == '%') {
      operand.kind = OperandKind::special;
      operand.symbol = word;
    } else {
      operand.kind = OperandKind::symbol;
      operand.symbol = word;
      operand.variable = find_variable(word);
    }
  }

  // [%rd1+16], [symbol], [%rd1, {…}, …]
  Operand address() {
    Operand operand;
    if (lexer_.peek().kind == LexemeKind::number) {
      operand.kind = OperandKind::address;
      operand.integer = parse_number(lexer_.next().text).integer;
    } else {
      name(lexer_.expect(LexemeKind::word).text, operand);
      if (operand.kind == OperandKind::special) {
        lexer_.fail(fmt::format("the register {} is not declared", operand.symbol));
      }
      operand.base_is_register = operand.kind == OperandKind::reg;
      operand.kind = OperandKind::address;
      if (lexer_.take("+")) {
        const bool negative = lexer_.take("-");
        const auto offset = parse_number(lexer_.expect(LexemeKind::number).text).integer;
        operand.integer = negative ? -offset : offset;
      } else if (lexer_.take("-")) {
        operand.integer = -parse_number(lexer_.expect(LexemeKind::number).text).integer;
      }
    }
    while (lexer_.take(",")) operand.parts.push_back(this->operand());
    lexer_.expect("]");
    return operand;
  }

  template <class Map>
  const typename Map::mapped_type* find_label(std::uint32_t scope, const std::string& name, Map Scope::* map) const {
    for (;; scope = scopes_[scope].parent) {
      const auto found = (scopes_[scope].*map).find(name);
      if (found != (scopes_[scope].*map).end()) return &found->second;
      if (scope == 0) return nullptr;
    }
  }

  void resolve_labels() {
    for (auto& instruction : function_.instructions) {
      for (auto& operand : instruction.operands) {
        if (operand.kind != OperandKind::symbol || operand.variable >= 0) continue;
        if (const auto* target = find_label(instruction.scope, operand.symbol, &Scope::labels)) {
          operand.kind = OperandKind::label;
          operand.integer = *target;
        } else if (const auto* table = find_label(instruction.scope, operand.symbol, &Scope::tables)) {
          operand.kind = OperandKind::label;
          operand.integer = static_cast<std::int64_t>(function_.branch_tables.size());
          auto& targets = function_.branch_tables.emplace_back();
          for (const auto& name : *table) {
            const auto* entry = find_label(instruction.scope, name, &Scope::labels);
            if (entry == nullptr) lexer_.fail(fmt::format("the label {} does not exist", name));
            targets.push_back(*entry);
          }
        }
      }
    }
  }

  Lexer& lexer_;
  Function& function_;
  std::vector<Scope> scopes_;
  std::uint32_t scope_ = 0;
  Line line_;
  using Place = std::array<std::uint32_t, 3>;  // file, line, column
  std::map<Place, std::uint32_t> inlined_;     // the kernel's line from which code at a place was called
};

}  // namespace

void parse_body(Lexer& lexer, Function& function) { BodyParser(lexer, function).parse(); }

}  // namespace tigon::emulator::ptx
