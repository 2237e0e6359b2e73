// Decides once per stream whether it takes colour.
#include "paint.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

namespace tigon::tools {
namespace {

int output_error = 0;  // of the first write that failed

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

void out(std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), stdout) < text.size() && output_error == 0) output_error = errno;
}
std::string finish_output() {
  errno = 0;
  std::cout.flush();  // the parser's help goes there
  if ((std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout) && output_error == 0)
    output_error = errno == 0 ? EIO : errno;
  return output_error == 0 ? "" : std::strerror(output_error);
}
void err(std::string_view text) {
  std::fflush(stdout);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace tigon::tools
