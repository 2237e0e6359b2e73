// Cuts PTX text into words, numbers, strings and punctuation.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace tigon::emulator::ptx {

enum class LexemeKind : std::uint8_t { end, word, number, string, punctuation };

struct Lexeme {
  LexemeKind kind = LexemeKind::end;
  std::string_view text;
  std::uint32_t line = 0;
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { advance(); }
  [[nodiscard]] const Lexeme& peek() const { return current_; }
  Lexeme next();
  bool take(std::string_view punctuation_or_word);  // consumes it if it is next
  void expect(std::string_view punctuation_or_word);
  Lexeme expect(LexemeKind kind);
  [[noreturn]] void fail(const std::string& sentence) const;
  [[nodiscard]] const char* position() const { return current_.text.data(); }

 private:
  void advance();
  std::string_view text_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  Lexeme current_;
};

// The value of a number lexeme.
struct Number {
  bool is_float = false;
  int literal_bytes = 0;  // 4 for 0f…, 8 for 0d…
  std::int64_t integer = 0;
  double floating = 0;
};
Number parse_number(std::string_view text);

}  // namespace tigon::emulator::ptx
