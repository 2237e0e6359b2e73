// Decides once per stream whether it takes colour.
#include "paint.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace tigon::tools {
namespace {

bool takes_colour(int descriptor) {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return (no_colour == nullptr || *no_colour == '\0') && !dumb && ::isatty(descriptor) == 1;
}

std::string painted(bool colours, Colour colour, std::string_view text) {
  constexpr std::string_view codes[] = {"1", "2", "32", "31", "33"};
  if (!colours) return std::string(text);
  return "\x1b[" + std::string(codes[static_cast<int>(colour)]) + "m" + std::string(text) + "\x1b[0m";
}

}  // namespace

std::string paint(Colour colour, std::string_view text) {
  static const bool colours = takes_colour(STDOUT_FILENO);
  return painted(colours, colour, text);
}
std::string paint_error(Colour colour, std::string_view text) {
  static const bool colours = takes_colour(STDERR_FILENO);
  return painted(colours, colour, text);
}

void out(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }
void err(std::string_view text) {
  std::fflush(stdout);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace tigon::tools
