// The one exception type: what went wrong, where, with both values and the cure.
#pragma once
#include <optional>
#include <stdexcept>
#include <string>

namespace tigon {

enum class ErrorKind {
  usage,     // the caller's input is wrong
  compile,   // a generated kernel did not compile; `log` holds the compiler's words
  io,        // a file or folder could not be read or written
  device,    // a library, driver or device is missing or refused
  internal,  // a fault of Tigon itself; please report it
};

// The parts of an error, filled with designated initialisers: Error({.kind = ..., .function = "matmul", ...},
// "sentence").
struct ErrorDetails {
  ErrorKind kind = ErrorKind::usage;
  std::string function{};                 // the Tigon function (or public C++ function) that was called
  std::string argument{};                 // the argument's path, e.g. "layers[3].up"
  std::string axis{};                     // the axis' printed name
  std::optional<std::string> found{};     // the value that was met
  std::optional<std::string> expected{};  // the value that was needed
  std::string cure{};                     // one sentence: what to do
  std::string log{};                      // a compiler's log, numbered source, options
};

class Error : public std::runtime_error {
 public:
  Error(ErrorDetails details, const std::string& sentence);
  [[nodiscard]] const ErrorDetails& details() const noexcept { return details_; }
  [[nodiscard]] ErrorKind kind() const noexcept { return details_.kind; }

 private:
  ErrorDetails details_;
};

// Warnings go to this sink, by default standard error; the library prints nothing else.
using WarningSink = void (*)(const std::string& message);
WarningSink set_warning_sink(WarningSink sink) noexcept;  // returns the previous one
void warn(const std::string& message);

}  // namespace tigon
