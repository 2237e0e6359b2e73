// Child processes with pipes or a terminal, and folders for them to write to.
#include "run_command.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace tigon::test {
namespace {

std::vector<std::string> child_environment(const Variables& changes) {
  std::vector<std::string> result;
  const auto changed = [&](const std::string& name) {
    return std::any_of(changes.begin(), changes.end(), [&](const auto& change) { return change.first == name; });
  };
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::string name = text.substr(0, text.find('='));
    const bool other_option = name.rfind("TIGON_", 0) == 0 && name != "TIGON_CACHE_DIR";
    if (!changed(name) && !other_option && name != "NO_COLOR") result.push_back(text);
  }
  for (const auto& [name, value] : changes) {
    if (!value.empty()) result.push_back(name + "=" + value);
  }
  return result;
}

[[noreturn]] void become(std::vector<std::string> words, std::vector<std::string> variables) {
  std::vector<char*> arguments, environment;
  for (std::string& word : words) arguments.push_back(word.data());
  for (std::string& variable : variables) environment.push_back(variable.data());
  arguments.push_back(nullptr);
  environment.push_back(nullptr);
  ::execve(arguments[0], arguments.data(), environment.data());
  ::_exit(127);
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::vector<std::string> words_of(const std::string& path, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {path};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

}  // namespace

std::string command_path(const std::string& program) {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  const std::filesystem::path command = self.parent_path().parent_path() / program;
  if (!std::filesystem::exists(command)) throw std::runtime_error(command.string() + " has not been built");
  return command.string();
}

Ran run_tigon(const std::vector<std::string>& arguments, const Variables& environment) {
  return run_program(command_path("tigon"), arguments, environment);
}

Ran run_program(const std::string& path, const std::vector<std::string>& arguments, const Variables& environment,
                const std::string& output) {
  int out[2], err[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  const std::vector<std::string> words = words_of(path, arguments), variables = child_environment(environment);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(output.empty() ? out[1] : ::open(output.c_str(), O_WRONLY | O_CREAT, 0600), STDOUT_FILENO);
    ::dup2(err[1], STDERR_FILENO);
    become(words, variables);
  }
  ::close(out[1]);
  ::close(err[1]);
  Ran ran;
  pollfd sources[] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  std::string* texts[] = {&ran.out, &ran.err};
  for (int open = 2; open > 0;) {
    if (::poll(sources, 2, -1) < 0 && errno != EINTR) break;
    for (int i = 0; i < 2; ++i) {
      if (sources[i].fd < 0 || sources[i].revents == 0) continue;
      char buffer[1 << 14];
      const ssize_t count = ::read(sources[i].fd, buffer, sizeof buffer);
      if (count > 0) {
        texts[i]->append(buffer, static_cast<std::size_t>(count));
      } else if (count == 0 || errno != EINTR) {
        sources[i].fd = -1;
        --open;
      }
    }
  }
  ::close(out[0]);
  ::close(err[0]);
  ran.code = wait_for(child);
  return ran;
}

Ran run_on_terminal(const std::vector<std::string>& arguments, const Variables& environment) {
  const std::vector<std::string> words = words_of(command_path("tigon"), arguments),
                                 variables = child_environment(environment);
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child < 0) throw std::runtime_error("no terminal");
  if (child == 0) become(words, variables);
  Ran ran;
  char buffer[1 << 14];
  for (ssize_t count = 0; (count = ::read(terminal, buffer, sizeof buffer)) > 0;) {
    ran.out.append(buffer, static_cast<std::size_t>(count));
  }
  ::close(terminal);
  ran.code = wait_for(child);
  return ran;
}

Folder::Folder() {
  path_ = (std::filesystem::temp_directory_path() / "tigon-tools-XXXXXX").string();
  if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no temporary folder");
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<std::string> Folder::files() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
    if (entry.is_regular_file()) names.push_back(std::filesystem::relative(entry.path(), path_).string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + " cannot be read");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  if (!file.flush()) throw std::runtime_error(path + " cannot be written");
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string lines_with(const std::string& text, const std::string& part) {
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    if (contains(line, part)) result += line + "\n";
  }
  return result;
}

}  // namespace tigon::test
