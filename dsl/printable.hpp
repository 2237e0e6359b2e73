// Names and paths as they may stand in generated text, whose comments end with the line, and in what is printed.
#pragma once
#include <string>
#include <string_view>

namespace tigon::dsl {

// Longer than any name worth reading; LLVM cuts its own at 1024 bytes.
inline constexpr std::size_t longest_name = 96;
inline constexpr std::size_t longest_path = 240;

// `?` for every control character, invisible or direction-changing character and byte that is no UTF-8; `/` for a
// backslash, which would join a comment with the next line; `'` for a quotation mark, which would end a message. A name
// that is too long loses its end, a path its start.
std::string printable_name(std::string_view name);
std::string printable_path(std::string_view path);

}  // namespace tigon::dsl
