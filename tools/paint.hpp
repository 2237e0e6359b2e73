// Colour for terminals: none where the output is not one, or where NO_COLOR is set.
#pragma once
#include <string>
#include <string_view>

namespace tigon::tools {

enum class Colour { bold, dim, green, red, yellow };

std::string paint(Colour colour, std::string_view text);        // for standard output
std::string paint_error(Colour colour, std::string_view text);  // for standard error

void out(std::string_view text);  // to standard output
// Writes what is buffered; an empty text, or why standard output could not take everything.
std::string finish_output();
void err(std::string_view text);  // to standard error

}  // namespace tigon::tools
