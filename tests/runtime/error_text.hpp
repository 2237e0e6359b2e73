// The message that a call is refused with, and the parts that it should have.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tigon/error.hpp"

namespace tigon::test {

// "no error" where the call throws none.
inline std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// Whether the message has every part; warns with the message where it has not.
inline bool says(const std::string& message, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    if (message.find(part) != std::string::npos) continue;
    WARN("`" << message << "` does not say `" << part << "`");
    return false;
  }
  return true;
}

}  // namespace tigon::test
