// The one table of environment options: every TIGON_* variable that a process may set.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tigon::runtime {

struct EnvironmentOption {
  std::string_view name;
  std::string_view value;  // what it holds, for people
  std::string_view doc;    // one sentence
};

std::span<const EnvironmentOption> environment_options();

// Its value; absent when unset or empty. `name` is one of the table's.
std::optional<std::string> environment_value(std::string_view name);

// Throws Error{usage} for a TIGON_* variable that is not in the table, and for a value that is not among an option's.
void check_environment();

}  // namespace tigon::runtime
