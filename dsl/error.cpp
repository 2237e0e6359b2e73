// Puts an error's parts into one message and holds the replaceable warning sink.
#include "tigon/error.hpp"

#include <atomic>
#include <cstdio>

namespace tigon {
namespace {

std::string compose(const ErrorDetails& details, const std::string& sentence) {
  std::string message;
  if (!details.function.empty()) message += details.function + ": ";
  message += sentence;
  std::string place;
  if (!details.argument.empty()) place += fmt::format("argument `{}`", details.argument);
  if (!details.axis.empty()) place += fmt::format("{}axis `{}`", place.empty() ? "" : ", ", details.axis);
  if (!place.empty()) message += " (" + place + ")";
  if (details.found) message += ": found " + *details.found;
  if (details.expected) message += fmt::format("{} expected {}", details.found ? "," : ":", *details.expected);
  if (!details.cure.empty()) message += ". " + details.cure;
  if (details.kind == ErrorKind::internal) message += ". This is a fault of Tigon: please report it with this message";
  if (!details.log.empty()) message += "\n" + details.log;
  return message;
}

void print_warning(const std::string& message) { std::fprintf(stderr, "tigon: warning: %s\n", message.c_str()); }

std::atomic<WarningSink> warning_sink{print_warning};

}  // namespace

Error::Error(ErrorDetails details, const std::string& sentence)
    : std::runtime_error(compose(details, sentence)), details_(std::move(details)) {}

WarningSink set_warning_sink(WarningSink sink) noexcept {
  return warning_sink.exchange(sink != nullptr ? sink : print_warning);
}

void warn(const std::string& message) { warning_sink.load()(message); }

}  // namespace tigon
