// The table of allowed IR and the check of a module's text against it.
#include "codegen/llvm/subset.hpp"

namespace tigon::llvm {
namespace {

using Form = SubsetForm;

constexpr SubsetRow rows[] = {
    // Arithmetic. No frem (calls fmod), no fast-math flags: -inf and NaN are legal values.
    {"fadd", Form::binary, "f32 f64"},
    {"fsub", Form::binary, "f32 f64"},
    {"fmul", Form::binary, "f32 f64"},
    {"fdiv", Form::binary, "f32 f64"},
    {"fneg", Form::unary, "f32 f64"},
    {"add", Form::binary, "i8 i16 i32 i64"},
    {"sub", Form::binary, "i8 i16 i32 i64"},
    {"mul", Form::binary, "i8 i16 i32 i64"},
    {"and", Form::binary, "i8 i16 i32 i64"},
    {"or", Form::binary, "i8 i16 i32 i64"},
    {"xor", Form::binary, "i8 i16 i32 i64"},
    {"shl", Form::binary, "i8 i16 i32 i64"},
    {"lshr", Form::binary, "i8 i16 i32 i64"},
    {"ashr", Form::binary, "i8 i16 i32 i64"},
    {"sdiv", Form::binary, "i32 i64"},
    {"udiv", Form::binary, "i32 i64"},
    {"srem", Form::binary, "i32 i64"},
    {"urem", Form::binary, "i32 i64"},
    // Comparisons. Minimum and maximum are fcmp and select: llvm.maximum aborts LLVM 15, llvm.maxnum differs on signed
    // zeros.
    {"fcmp", Form::compare, "f32 f64|oeq one olt ole ogt oge ord uno ueq une ult ule ugt uge"},
    {"icmp", Form::compare, "i8 i16 i32 i64|eq ne slt sle sgt sge ult ule ugt uge"},
    // Intrinsics that are one instruction, or a short sequence, on every target.
    {"llvm.fma", Form::intrinsic, "f32 f64", 3},
    {"llvm.sqrt", Form::intrinsic, "f32 f64", 1},
    {"llvm.rint", Form::intrinsic, "f32 f64", 1},
    {"llvm.roundeven", Form::intrinsic, "f32 f64", 1},
    {"llvm.floor", Form::intrinsic, "f32 f64", 1},
    {"llvm.ceil", Form::intrinsic, "f32 f64", 1},
    {"llvm.trunc", Form::intrinsic, "f32 f64", 1},
    {"llvm.fabs", Form::intrinsic, "f32 f64", 1},
    {"llvm.copysign", Form::intrinsic, "f32 f64", 2},
    // Casts. bf16 is i16 shifted by integer operations, never `bfloat`; f16 to or from f64 goes through f32.
    // (zext and select of i1, a comparison's result, are covered by the comparisons.)
    {"fpext", Form::cast, "f16>f32 f32>f64"},
    {"fptrunc", Form::cast, "f32>f16 f64>f32"},
    {"fptosi", Form::cast, "f32>i32 f32>i64 f64>i32 f64>i64"},
    {"sitofp", Form::cast, "i32>f32 i64>f32 i32>f64 i64>f64"},
    {"uitofp", Form::cast, "i32>f32 i32>f64"},
    {"zext", Form::cast, "i8>i16 i8>i32 i16>i32 i8>i64 i16>i64 i32>i64"},
    {"sext", Form::cast, "i8>i16 i8>i32 i16>i32 i8>i64 i16>i64 i32>i64"},
    {"trunc", Form::cast, "i16>i8 i32>i8 i32>i16 i64>i8 i64>i16 i64>i32"},
    {"bitcast", Form::cast, "i16>f16 f16>i16 i32>f32 f32>i32 i64>f64 f64>i64"},
    // Memory. The masked intrinsics take their alignment as an i32 operand; newer LLVMs upgrade that form.
    {"load", Form::memory, "f32 f64 i8 i16 i32 i64"},
    {"store", Form::memory, "f32 f64 i8 i16 i32 i64"},
    {"llvm.masked.load", Form::memory, "f32 f64 i8 i16 i32 i64"},
    {"llvm.masked.store", Form::memory, "f32 f64 i8 i16 i32 i64"},
    {"llvm.masked.gather", Form::memory, "f32 f64 i8 i16 i32 i64"},
    {"llvm.masked.scatter", Form::memory, "f32 f64 i8 i16 i32 i64"},
    {"llvm.prefetch", Form::memory, ""},
    {"alloca", Form::memory, ""},
    {"getelementptr", Form::memory, ""},
    // The rest.
    {"shufflevector", Form::other, "f32 f64 i8 i16 i32 i64"},
    {"extractelement", Form::other, "f32 f64 i8 i16 i32 i64"},
    {"insertelement", Form::other, "f32 f64 i8 i16 i32 i64"},
    {"select", Form::other, "f32 f64 i8 i16 i32 i64"},
    {"phi", Form::other, ""},
    {"br", Form::other, ""},
    {"call", Form::other, ""},  // of a row of this table or of a function in the same module
    {"ret", Form::other, ""},
};

struct Forbidden {
  std::string_view word;
  std::string_view why;
};

constexpr Forbidden forbidden[] = {
    {"bfloat", "becomes library calls, or aborts LLVM 15; use i16 and integer operations"},
    {"splat", "LLVM 15 cannot parse it; write the vector out"},
    {"captures", "LLVM 15 to 20 cannot parse it"},
    {"nocapture", "LLVM 21 replaced it"},
    {"memory", "LLVM 15 cannot parse it"},
    {"nofpclass", "LLVM 15 cannot parse it"},
    {"nneg", "LLVM 15 cannot parse it"},
    {"disjoint", "LLVM 15 cannot parse it"},
    {"samesign", "LLVM 15 to 19 cannot parse it"},
    {"nusw", "LLVM 15 to 19 cannot parse it"},
    {"vscale", "vectors have a fixed length"},
    {"i128", "becomes library calls"},
    {"fp128", "becomes library calls"},
    {"x86_fp80", "is not portable"},
    {"fast", "fast-math flags are not allowed"},
    {"nnan", "fast-math flags are not allowed"},
    {"ninf", "fast-math flags are not allowed"},
    {"nsz", "fast-math flags are not allowed"},
    {"arcp", "fast-math flags are not allowed"},
    {"contract", "fast-math flags are not allowed"},
    {"afn", "fast-math flags are not allowed"},
    {"reassoc", "fast-math flags are not allowed"},
    {"seq_cst", "only monotonic atomics are allowed"},
    {"acquire", "only monotonic atomics are allowed"},
    {"release", "only monotonic atomics are allowed"},
};

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
}

// The next word at or after `position`, with its sigil (%, @, !, #, ") if it has one; "" at the end.
std::string_view next_word(std::string_view line, size_t& position) {
  while (position < line.size() && !is_word_character(line[position]) &&
         std::string_view("%@!#\"").find(line[position]) == std::string_view::npos) {
    ++position;
  }
  const size_t start = position;
  if (position < line.size() && line[position] == '"') {
    const size_t quote = line.find('"', position + 1);
    position = quote == std::string_view::npos ? line.size() : quote + 1;
    return line.substr(start, position - start);
  }
  if (position < line.size()) ++position;
  if (position < line.size() && position == start + 1 && !is_word_character(line[start]) && line[position] == '"') {
    const size_t quote = line.find('"', position + 1);
    position = quote == std::string_view::npos ? line.size() : quote + 1;
    return line.substr(start, position - start);
  }
  while (position < line.size() && is_word_character(line[position])) ++position;
  return line.substr(start, position - start);
}

bool has_row(std::string_view name) {
  return std::any_of(std::begin(rows), std::end(rows), [&](const SubsetRow& row) { return row.name == name; });
}

// "llvm.fma" of "llvm.fma.v16f32": the longest row that is a dotted prefix.
bool is_allowed_intrinsic(std::string_view name) {
  return std::any_of(std::begin(rows), std::end(rows), [&](const SubsetRow& row) {
    return row.name.starts_with("llvm.") && name.starts_with(row.name) &&
           (name.size() == row.name.size() || name[row.name.size()] == '.');
  });
}

std::string check_half(std::string_view opcode, bool has_half, bool has_double) {
  if (!has_half) return {};
  const bool conversion = opcode == "fpext" || opcode == "fptrunc";
  if (conversion && has_double) return "f16 to or from f64 becomes a library call";
  const bool allowed = conversion || opcode == "bitcast" || opcode == "load" || opcode == "store";
  return allowed ? std::string{} : "`half` is only loaded, stored, extended, truncated and bitcast";
}

// Why one line, without its comment, lies outside; "" if it does not.
std::string check_line(std::string_view line) {
  size_t position = 0;
  std::string_view word = next_word(line, position);
  if (word.empty() || word.starts_with('!') || word == "source_filename" || word == "target" || word == "attributes")
    return {};
  const size_t after_word = position;
  if (after_word < line.size() && line[after_word] == ':') return {};  // a label

  std::string_view opcode;
  const bool header = word == "define" || word == "declare";
  const bool global = word.starts_with('@');
  if (!header && !global) {
    opcode = word.starts_with('%') ? next_word(line, position) : word;
    if (opcode == "tail" || opcode == "notail") opcode = next_word(line, position);
    // Entries of a phi or a vector constant that continue on a new line are not written by the printer.
    if (!has_row(opcode)) return fmt::format("the instruction `{}` is not in the subset", opcode);
  }

  bool has_half = false, has_double = false;
  for (position = 0; !(word = next_word(line, position)).empty();) {
    if (word.starts_with("@llvm.") && !is_allowed_intrinsic(word.substr(1))) {
      return fmt::format("the intrinsic {} is not in the subset", word);
    }
    has_half |= word == "half";
    has_double |= word == "double";
    for (const Forbidden& row : forbidden) {
      if (word == row.word) return fmt::format("`{}`: {}", row.word, row.why);
    }
  }
  if (header || opcode == "call") return {};
  return check_half(opcode, has_half, has_double);
}

}  // namespace

std::span<const SubsetRow> subset() { return rows; }

std::string outside_subset(std::string_view text) {
  size_t number = 1;
  for (size_t start = 0; start < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', start), text.size());
    std::string_view line = text.substr(start, end - start);
    line = line.substr(0, line.find(';'));
    if (const std::string why = check_line(line); !why.empty())
      return fmt::format("line {}: {}: {}", number, why, line);
    start = end + 1;
  }
  return {};
}

}  // namespace tigon::llvm
