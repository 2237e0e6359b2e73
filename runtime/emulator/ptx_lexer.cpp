// Cuts PTX text into words, numbers, strings and punctuation.
#include "runtime/emulator/ptx_lexer.hpp"

#include <bit>
#include <cctype>
#include <cstdlib>

#include "runtime/emulator/ptx_error.hpp"

namespace tigon::emulator::ptx {

namespace {
bool starts_word(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%' || c == '.';
}
bool continues_word(char c) { return starts_word(c) || std::isdigit(static_cast<unsigned char>(c)) != 0; }
}  // namespace

void Lexer::fail(const std::string& sentence) const {
  throw PtxError(fmt::format("PTX line {}: {}", current_.line, sentence));
}

void Lexer::advance() {
  const auto size = text_.size();
  for (;;) {
    while (at_ < size && (std::isspace(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '\0')) {
      line_ += text_[at_] == '\n';
      ++at_;
    }
    if (at_ + 1 < size && text_[at_] == '/' && text_[at_ + 1] == '/') {
      while (at_ < size && text_[at_] != '\n') ++at_;
    } else if (at_ + 1 < size && text_[at_] == '/' && text_[at_ + 1] == '*') {
      at_ += 2;
      while (at_ + 1 < size && (text_[at_] != '*' || text_[at_ + 1] != '/')) line_ += text_[at_++] == '\n';
      at_ += 2;
    } else {
      break;
    }
  }
  current_.line = line_;
  if (at_ >= size) {
    current_ = {LexemeKind::end, text_.substr(size), line_};
    return;
  }
  const auto begin = at_;
  const char first = text_[at_];
  if (starts_word(first)) {
    while (at_ < size) {
      if (continues_word(text_[at_])) {
        ++at_;
      } else if (at_ + 2 < size && text_[at_] == ':' && text_[at_ + 1] == ':' && continues_word(text_[at_ + 2])) {
        at_ += 2;
      } else {
        break;
      }
    }
    current_.kind = LexemeKind::word;
  } else if (std::isdigit(static_cast<unsigned char>(first)) != 0) {
    while (at_ < size && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '.')) ++at_;
    current_.kind = LexemeKind::number;
  } else if (first == '"') {
    ++at_;
    while (at_ < size && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    ++at_;
    if (at_ > size) fail("a string does not end");
    current_.kind = LexemeKind::string;
  } else {
    ++at_;
    current_.kind = LexemeKind::punctuation;
  }
  current_.text = text_.substr(begin, at_ - begin);
}

Lexeme Lexer::next() {
  const Lexeme lexeme = current_;
  if (lexeme.kind == LexemeKind::end) fail("the text ends too early");
  advance();
  return lexeme;
}

bool Lexer::take(std::string_view punctuation_or_word) {
  if (current_.kind == LexemeKind::end || current_.kind == LexemeKind::string || current_.text != punctuation_or_word) {
    return false;
  }
  advance();
  return true;
}

void Lexer::expect(std::string_view punctuation_or_word) {
  if (!take(punctuation_or_word)) fail(fmt::format("'{}' where '{}' was expected", current_.text, punctuation_or_word));
}

Lexeme Lexer::expect(LexemeKind kind) {
  if (current_.kind != kind) fail(fmt::format("'{}' was not expected here", current_.text));
  return next();
}

Number parse_number(std::string_view text) {
  Number number;
  const std::string copy(text);
  if (text.size() == 10 && text[0] == '0' && (text[1] == 'f' || text[1] == 'F')) {
    number.is_float = true;
    number.literal_bytes = 4;
    number.integer = static_cast<std::int64_t>(std::strtoull(copy.c_str() + 2, nullptr, 16));
    number.floating = std::bit_cast<float>(static_cast<std::uint32_t>(number.integer));
  } else if (text.size() == 18 && text[0] == '0' && (text[1] == 'd' || text[1] == 'D')) {
    number.is_float = true;
    number.literal_bytes = 8;
    number.integer = static_cast<std::int64_t>(std::strtoull(copy.c_str() + 2, nullptr, 16));
    number.floating = std::bit_cast<double>(number.integer);
  } else if (text.find('.') != std::string_view::npos) {
    number.is_float = true;
    number.floating = std::strtod(copy.c_str(), nullptr);
  } else if (text.size() > 2 && text[0] == '0' && (text[1] == 'b' || text[1] == 'B')) {
    number.integer = static_cast<std::int64_t>(std::strtoull(copy.c_str() + 2, nullptr, 2));
  } else {
    number.integer = static_cast<std::int64_t>(std::strtoull(copy.c_str(), nullptr, 0));
  }
  return number;
}

}  // namespace tigon::emulator::ptx
