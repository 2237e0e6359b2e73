// Files of a dump; each is written beside its place and renamed, since several processes may dump the same program.
#include "runtime/dump.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "codegen/loops/print.hpp"
#include "codegen/plan/explain.hpp"
#include "codegen/plan/print.hpp"
#include "dsl/print.hpp"
#include "runtime/cache/file.hpp"
#include "runtime/cache/key.hpp"
#include "runtime/environment.hpp"
#include "tigon/error.hpp"

namespace tigon::runtime {
namespace {

[[noreturn]] void refuse(const std::string& path, int error) {
  throw Error({.kind = ErrorKind::io,
               .found = path + ": " + error_text(error),
               .cure = "Point TIGON_DUMP at a folder that can be written, or unset it"},
              "a dump could not be written");
}

void write_text(const std::string& path, const std::string& text) {
  const std::string part = fmt::format("{}.{}.part", path, ::getpid());
  std::FILE* file = std::fopen(part.c_str(), "we");
  if (file == nullptr) refuse(part, errno);
  int error = std::fwrite(text.data(), 1, text.size(), file) == text.size() ? 0 : errno;
  if (std::fclose(file) != 0 && error == 0) error = errno;
  if (error == 0 && std::rename(part.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) {
    std::remove(part.c_str());
    refuse(path, error);
  }
}

std::string file_name(const std::string& text) {
  std::string name;
  for (const char c : text.substr(0, 80)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    name += plain ? c : '_';
  }
  return name;
}

// A folder of its own for each plan: by name for people, by content for two plans of one name.
std::string folder_of(const plan::Plan& plan, const std::string& plan_text, const std::string& folder) {
  return fmt::format("{}/{}_{}", folder, file_name(plan.name), hash_bytes(plan_text).hex().substr(0, 8));
}

}  // namespace

std::string dump_plan(const plan::Plan& plan, const std::string& folder, const std::string& extension,
                      const std::function<std::string(const plan::Kernel&)>& text_of) {
  const std::string text = plan::print(plan);
  const std::string path = folder_of(plan, text, folder);
  if (const int error = make_folders(path)) refuse(path, error);
  write_text(path + "/plan.txt", text);
  write_text(path + "/plan.json", plan::explain_json(plan));
  for (const plan::Kernel& kernel : plan.kernels) {
    const std::string base = path + "/" + file_name(kernel.name);
    write_text(base + ".graph", dsl::print(kernel.graph));
    write_text(base + ".loops", loops::print(kernel.scheduled.nest));
    write_text(base + "." + extension, text_of(kernel));
  }
  return path;
}

std::string overridden_text(const plan::Plan& plan, const plan::Kernel& kernel, const std::string& extension,
                            const std::string& text) {
  const std::optional<std::string> folder = environment_value("TIGON_OVERRIDE");
  if (!folder) return text;
  const std::string path =
      fmt::format("{}/{}.{}", folder_of(plan, plan::print(plan), *folder), file_name(kernel.name), extension);
  const File file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && (errno == ENOENT || errno == ENOTDIR)) return text;
  std::string edited;
  constexpr std::uint64_t most = std::uint64_t{16} << 20;
  if (const int error = file ? read_file(file, most, edited) : errno) {
    throw Error({.kind = ErrorKind::io,
                 .found = path + ": " + error_text(error),
                 .cure = "Point TIGON_OVERRIDE at a folder that TIGON_DUMP wrote, or unset it"},
                "an edited kernel could not be read");
  }
  if (edited == text) return text;
  warn(fmt::format("{} is compiled in place of the kernel `{}` (TIGON_OVERRIDE)", path, kernel.name));
  return edited;
}

}  // namespace tigon::runtime
