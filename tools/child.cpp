// Pipes for both outputs, read in turns so that neither side waits for the other.
#include "child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "runtime/cache/file.hpp"
#include "tigon/error.hpp"

namespace tigon::tools {
namespace {

[[noreturn]] void refuse(const std::string& program, int number) {
  throw Error({.kind = ErrorKind::device, .found = runtime::error_text(number)},
              "the program " + program + " could not be started");
}

struct Pipe {
  std::array<int, 2> ends{-1, -1};
  explicit Pipe(const std::string& program) {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) refuse(program, errno);
  }
  ~Pipe() {
    close(0);
    close(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close(std::size_t end) {
    if (ends[end] >= 0) ::close(ends[end]);
    ends[end] = -1;
  }
};

struct Actions {
  posix_spawn_file_actions_t list{};
  Actions() { ::posix_spawn_file_actions_init(&list); }
  ~Actions() { ::posix_spawn_file_actions_destroy(&list); }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
};

}  // namespace

ChildResult run_child(const std::vector<std::string>& words) {
  std::vector<std::string> copies = words;
  std::vector<char*> arguments;
  for (std::string& word : copies) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  Pipe out(words.front()), err(words.front());
  Actions actions;
  ::posix_spawn_file_actions_addopen(&actions.list, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions.list, out.ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions.list, err.ends[1], STDERR_FILENO);
  pid_t child = -1;
  if (const int error =
          ::posix_spawn(&child, words.front().c_str(), &actions.list, nullptr, arguments.data(), ::environ))
    refuse(words.front(), error);
  out.close(1);
  err.close(1);

  ChildResult result;
  std::array<pollfd, 2> sources{pollfd{out.ends[0], POLLIN, 0}, pollfd{err.ends[0], POLLIN, 0}};
  const std::array<std::string*, 2> texts{&result.out, &result.err};
  std::array<char, 1 << 14> buffer{};
  for (int open = 2; open > 0;) {
    if (::poll(sources.data(), sources.size(), -1) < 0 && errno != EINTR) break;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      if (sources[i].fd < 0 || sources[i].revents == 0) continue;
      const ssize_t count = ::read(sources[i].fd, buffer.data(), buffer.size());
      if (count > 0) {
        texts[i]->append(buffer.data(), static_cast<std::size_t>(count));
      } else if (count == 0 || errno != EINTR) {
        sources[i].fd = -1;
        --open;
      }
    }
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace tigon::tools
