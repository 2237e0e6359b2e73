// Files of a dump; each is written beside its place and renamed, since several processes may dump the same program.
#include "runtime/dump.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "codegen/loops/print.hpp"
#include "codegen/plan/explain.hpp"
#include "codegen/plan/print.hpp"
#include "dsl/print.hpp"
#include "runtime/cache/file.hpp"
#include "runtime/cache/key.hpp"
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

}  // namespace

std::string dump_plan(const plan::Plan& plan, const std::string& folder, const std::string& extension,
                      const std::function<std::string(const plan::Kernel&)>& text_of) {
  const std::string text = plan::print(plan);
  const std::string path = fmt::format("{}/{}_{}", folder, file_name(plan.name), hash_bytes(text).hex().substr(0, 8));
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

}  // namespace tigon::runtime
