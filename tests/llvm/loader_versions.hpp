// The LLVM libraries installed on this machine, newest first.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "runtime/llvm/compiler.hpp"
#include "tigon/error.hpp"

namespace tigon::testing {

inline const std::vector<std::shared_ptr<const runtime::LlvmCompiler>>& installed_llvms() {
  static const auto compilers = [] {
    std::vector<std::shared_ptr<const runtime::LlvmCompiler>> found;
    for (int version = 30; version >= 15; --version) {
      const std::string name = std::to_string(version);
      if (runtime::LlvmCompiler::search(name).found()) found.push_back(runtime::LlvmCompiler::load(name));
    }
    return found;
  }();
  return compilers;
}

}  // namespace tigon::testing
