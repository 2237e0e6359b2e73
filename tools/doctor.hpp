// How `tigon doctor` writes a finding, for its parts.
#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "paint.hpp"

namespace tigon::tools {

class Findings {
 public:
  void title(std::string_view text) { out(paint(Colour::bold, text) + "\n"); }
  void line(std::string_view label, const std::string& text) { out(fmt::format("  {:14} {}\n", label, text)); }
  // Something that Tigon needs.
  void missing(const std::string& text, const std::string& cure) {
    out("  " + paint(Colour::red, "missing") + "        " + text + "\n");
    if (!cure.empty()) line("cure", cure);
    ++missing_;
  }
  // Something that it does without.
  void note(const std::string& text, const std::string& cure) {
    out("  " + paint(Colour::yellow, "note") + "           " + text + "\n");
    if (!cure.empty()) line("cure", cure);
  }
  [[nodiscard]] int missing() const { return missing_; }

 private:
  int missing_ = 0;
};

// What GPUs need: nothing of it is missing where there is none. Returns whether kernels can run on a device.
bool diagnose_gpu(Findings& findings);

}  // namespace tigon::tools
