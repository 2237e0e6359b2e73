// Runs the `tigon` command that was built beside the tests.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace tigon::test {

struct Ran {
  int code = -1;  // exit code; 128 + the signal's number where one ended it
  std::string out, err;
};

using Variables = std::vector<std::pair<std::string, std::string>>;  // an empty value unsets

// The path of a program of this build, as in "tigon" or "examples/language_model".
std::string command_path(const std::string& program);
// Standard output goes to the file `output`, where one is given.
Ran run_program(const std::string& path, const std::vector<std::string>& arguments, const Variables& environment = {},
                const std::string& output = {});
// No shell: arguments go as they are. TIGON_* variables of the test's own environment are not passed on, except for the
// cache's folder.
Ran run_tigon(const std::vector<std::string>& arguments, const Variables& environment = {});
// The same with standard output on a terminal; `out` has both streams.
Ran run_on_terminal(const std::vector<std::string>& arguments, const Variables& environment = {});

// A fresh folder, removed with everything in it at the end.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  // Paths of all files below, relative, sorted.
  [[nodiscard]] std::vector<std::string> files() const;

 private:
  std::string path_;
};

std::string read_text(const std::string& path);
void write_text(const std::string& path, const std::string& text);
bool contains(const std::string& text, const std::string& part);
// The lines of a text that contain the part, joined.
std::string lines_with(const std::string& text, const std::string& part);

}  // namespace tigon::test
