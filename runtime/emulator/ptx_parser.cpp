// Parses a module: directives, variables with their initial values, and functions.
#include <cstring>

#include "runtime/emulator/ptx_body.hpp"

namespace tigon::emulator::ptx {

namespace {

Space space_of(std::string_view word) {
  if (word == ".global") return Space::global;
  if (word == ".const") return Space::constant;
  if (word == ".shared") return Space::shared;
  if (word == ".local") return Space::local;
  return Space::param;
}

void skip_section(Lexer& lexer) {
  lexer.expect("{");
  for (int depth = 1; depth > 0;) {
    const auto text = lexer.next().text;
    depth += text == "{";
    depth -= text == "}";
  }
}

void append_value(Lexer& lexer, const Number& number, bool negative, Type type, std::vector<std::uint8_t>& bytes) {
  const auto size = static_cast<std::size_t>(type_bytes(type));
  std::uint64_t bits = static_cast<std::uint64_t>(number.integer);
  if (negative && !number.is_float) bits = std::uint64_t{0} - bits;
  if (number.is_float && number.literal_bytes != type_bytes(type)) {
    if (type == Type::f32) {
      bits = std::bit_cast<std::uint32_t>(static_cast<float>(number.floating));
    } else if (type == Type::f64) {
      bits = std::bit_cast<std::uint64_t>(number.floating);
    } else {
      lexer.fail("an initial value does not have its variable's type");
    }
  }
  if (number.is_float && negative) bits ^= std::uint64_t{1} << (size * 8 - 1);
  const auto* from = reinterpret_cast<const std::uint8_t*>(&bits);
  bytes.insert(bytes.end(), from, from + size);
}

// { 1, 2, { 3, 4 } }, a number, or an address.
void parse_initializer(Lexer& lexer, Variable& variable, std::vector<std::uint8_t>& bytes) {
  if (lexer.take("{")) {
    while (!lexer.take("}")) {
      parse_initializer(lexer, variable, bytes);
      lexer.take(",");
    }
    return;
  }
  if (lexer.peek().kind == LexemeKind::word) {
    const bool generic = lexer.take("generic");
    if (generic) lexer.expect("(");
    Initializer address{bytes.size(), {}, std::string(lexer.next().text)};
    if (generic) lexer.expect(")");
    std::int64_t offset = 0;
    if (lexer.take("+")) offset = parse_number(lexer.expect(LexemeKind::number).text).integer;
    address.bytes.resize(8);
    std::memcpy(address.bytes.data(), &offset, 8);
    variable.initializers.push_back(std::move(address));
    bytes.resize(bytes.size() + 8);
    return;
  }
  const bool negative = lexer.take("-");
  append_value(lexer, parse_number(lexer.expect(LexemeKind::number).text), negative, variable.type, bytes);
}

// Everything before a function or a variable: linkage, in any order.
bool take_linkage(Lexer& lexer, bool& external) {
  if (lexer.take(".extern")) return external = true;
  return lexer.take(".visible") || lexer.take(".weak") || lexer.take(".common");
}

void parse_signature(Lexer& lexer, Function& function, std::vector<std::uint32_t>& list) {
  if (!lexer.take("(")) return;
  while (!lexer.take(")")) {
    const auto word = lexer.next().text;
    if (word != ".param") lexer.fail(fmt::format("'{}' where a parameter was expected", word));
    list.push_back(static_cast<std::uint32_t>(function.variables.size()));
    function.variables.push_back(parse_variable(lexer, Space::param, false));
    lexer.take(",");
  }
}

void parse_function_directives(Lexer& lexer, Function& function) {
  const auto numbers = [&] {
    std::uint32_t product = 1;
    do {
      product *= static_cast<std::uint32_t>(parse_number(lexer.expect(LexemeKind::number).text).integer);
    } while (lexer.take(","));
    return product;
  };
  while (lexer.peek().kind == LexemeKind::word) {
    const auto word = lexer.next().text;
    if (word == ".maxntid" || word == ".reqntid") {
      function.max_threads = numbers();
    } else if (word == ".reqnctapercluster") {
      function.cluster = {1, 1, 1};
      std::size_t axis = 0;
      do {
        function.cluster.at(axis++) =
            static_cast<std::uint32_t>(parse_number(lexer.expect(LexemeKind::number).text).integer);
      } while (lexer.take(","));
    } else if (word == ".minnctapersm" || word == ".maxnreg" || word == ".maxclusterrank" || word == ".abi_preserve") {
      numbers();
    } else if (word == ".pragma") {
      lexer.expect(LexemeKind::string);
      lexer.expect(";");
    } else if (word != ".explicitcluster" && word != ".blocksareclusters" && word != ".noreturn") {
      lexer.fail(fmt::format("unknown directive '{}' of a function", word));
    }
  }
}

Function parse_function(Lexer& lexer, bool entry, bool external) {
  Function function;
  function.entry = entry;
  function.line.ptx_line = lexer.peek().line;
  if (!entry) parse_signature(lexer, function, function.results);
  function.name = lexer.expect(LexemeKind::word).text;
  parse_signature(lexer, function, function.parameters);
  parse_function_directives(lexer, function);
  if (lexer.take(";") || external) {
    function.declared_only = true;
    return function;
  }
  parse_body(lexer, function);
  return function;
}

}  // namespace

// .align 16 .b8 name[4][8] = {...}; the space is read already. Stops before the comma, the bracket or the semicolon.
Variable parse_variable(Lexer& lexer, Space space, bool external) {
  Variable variable;
  variable.space = space;
  variable.external = external;
  std::uint64_t vector = 1;
  std::uint32_t align = 0;
  for (;;) {
    const auto word = lexer.expect(LexemeKind::word).text;
    if (word == ".align") {
      align = static_cast<std::uint32_t>(parse_number(lexer.expect(LexemeKind::number).text).integer);
    } else if (word == ".ptr") {
      // .ptr .global .align 16: what the pointer points to, which only an optimiser needs.
      while (lexer.peek().text == ".global" || lexer.peek().text == ".shared" || lexer.peek().text == ".const" ||
             lexer.peek().text == ".local") {
        lexer.next();
      }
      if (lexer.take(".align")) lexer.expect(LexemeKind::number);
    } else if (word == ".v2") {
      vector = 2;
    } else if (word == ".v4") {
      vector = 4;
    } else if (word == ".attribute") {
      lexer.expect("(");
      while (!lexer.take(")")) lexer.next();
    } else if (word[0] == '.') {
      variable.type = parse_type(word.substr(1));
      if (variable.type == Type::none) lexer.fail(fmt::format("unknown type '{}' of a variable", word));
    } else {
      variable.name = word;
      break;
    }
  }
  const auto element = static_cast<std::uint64_t>(type_bytes(variable.type)) * vector;
  variable.align = align != 0 ? align : static_cast<std::uint32_t>(std::max<std::uint64_t>(element, 1));
  std::uint64_t count = 1;
  while (lexer.take("[")) {
    if (lexer.take("]")) {
      count = 0;
    } else {
      count *= static_cast<std::uint64_t>(parse_number(lexer.expect(LexemeKind::number).text).integer);
      lexer.expect("]");
    }
  }
  variable.bytes = element * count;
  variable.dynamic = count == 0 && external;
  if (lexer.take("=")) {
    std::vector<std::uint8_t> bytes;
    parse_initializer(lexer, variable, bytes);
    variable.bytes = std::max<std::uint64_t>(variable.bytes, bytes.size());
    variable.initializers.insert(variable.initializers.begin(), Initializer{0, std::move(bytes), {}});
  }
  return variable;
}

Module parse(std::string_view text) {
  Lexer lexer(text);
  Module module;
  bool external = false;
  while (lexer.peek().kind != LexemeKind::end) {
    if (lexer.take(";") || take_linkage(lexer, external)) continue;
    const auto word = lexer.expect(LexemeKind::word).text;
    if (word == ".version") {
      module.version = lexer.next().text;
    } else if (word == ".target") {
      module.target = lexer.next().text;
      while (lexer.take(",")) lexer.next();
    } else if (word == ".address_size") {
      if (lexer.next().text != "64") lexer.fail("only 64-bit addresses are supported");
    } else if (word == ".file") {
      const auto number = static_cast<std::size_t>(parse_number(lexer.next().text).integer);
      const auto name = lexer.expect(LexemeKind::string).text;
      module.files.resize(std::max(module.files.size(), number + 1));
      module.files[number] = name.substr(1, name.size() - 2);
      while (lexer.take(",")) lexer.next();
    } else if (word == ".section") {
      lexer.next();
      skip_section(lexer);
    } else if (word == ".pragma") {
      lexer.expect(LexemeKind::string);
    } else if (word == ".entry" || word == ".func") {
      module.functions.push_back(parse_function(lexer, word == ".entry", external));
      external = false;
    } else if (word == ".global" || word == ".const" || word == ".shared") {
      do {
        module.variables.push_back(parse_variable(lexer, space_of(word), external));
      } while (lexer.take(","));
      lexer.expect(";");
      external = false;
    } else {
      lexer.fail(fmt::format("unknown directive '{}'", word));
    }
  }
  return module;
}

}  // namespace tigon::emulator::ptx
