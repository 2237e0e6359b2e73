// Reads UTF-8 character by character.
#include "dsl/printable.hpp"

#include <cstdint>

namespace tigon::dsl {
namespace {

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 1;
  bool valid = true;
};

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xc0u) == 0x80u; }

Character character_at(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return {first, 1, true};
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || at + bytes > text.size()) return {first, 1, false};
  std::uint32_t code = first & (0x7fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if (!continues(text[at + i])) return {first, 1, false};
    code = code << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3fu);
  }
  const bool overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  if (overlong || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {first, 1, false};
  return {code, bytes, true};
}

bool shows(std::uint32_t code) {
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;  // control characters
  if (code >= 0x200b && code <= 0x200f) return false;              // of no width, marks of direction
  if (code >= 0x2028 && code <= 0x202e) return false;              // line ends, embeddings
  return !(code >= 0x2060 && code <= 0x206f) && code != 0xfeff;    // invisible operators, isolates, byte order
}

std::string printable(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const Character character = character_at(text, at);
    if (character.code == '\\') {
      result += '/';
    } else if (character.code == '"') {
      result += '\'';
    } else if (!character.valid || !shows(character.code)) {
      result += '?';
    } else {
      result += text.substr(at, character.bytes);
    }
    at += character.bytes;
  }
  return result;
}

}  // namespace

std::string printable_name(std::string_view name) {
  std::string result = printable(name.substr(0, 4 * longest_name));
  if (result.size() <= longest_name) return result;
  std::size_t end = longest_name - 3;
  while (end > 0 && continues(result[end])) --end;
  return result.substr(0, end) + "...";
}

std::string printable_path(std::string_view path) {
  std::string result = printable(path);
  if (result.size() <= longest_path) return result;
  std::size_t start = result.size() - longest_path + 3;
  while (start < result.size() && continues(result[start])) ++start;
  return "..." + result.substr(start);
}

}  // namespace tigon::dsl
