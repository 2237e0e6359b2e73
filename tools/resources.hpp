// Kernels' resources as a table or as JSON.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "runtime/nvrtc/resources.hpp"

namespace tigon::tools {

using KernelTable = std::vector<std::pair<std::string, runtime::KernelResources>>;

std::string resources_text(const KernelTable& kernels, const std::string& architecture);
std::string resources_json(const KernelTable& kernels, const std::string& architecture);

}  // namespace tigon::tools
