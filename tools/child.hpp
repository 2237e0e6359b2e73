// Runs another program and keeps what it writes. No shell is involved: arguments go as they are.
#pragma once
#include <string>
#include <vector>

namespace tigon::tools {

struct ChildResult {
  int code = -1;  // exit code; 128 + the signal's number where one ended it
  std::string out, err;
};

// `words` begins with the program's path. Throws Error{device} where it cannot be started.
ChildResult run_child(const std::vector<std::string>& words);

}  // namespace tigon::tools
