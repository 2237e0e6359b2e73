// The device prelude for CUDA: types, vectors in memory and math, of which a kernel pastes only what it uses.
#pragma once
#include <set>
#include <string>
#include <string_view>

#include "tigon/dtype.hpp"

namespace tigon::cuda {

// The function that computes a scalar operation, by the name in the scalar table ("tigon_exp"); what it needs of the
// prelude is added to `used`.
std::string function_for(std::string_view table_name, DType dtype, std::set<std::string>& used);

// Whether a text may call a function of this name: no variable should hide it.
bool is_function(std::string_view name);

// The prelude's text for these pieces and all that they need, in a fixed order.
std::string prelude_text(const std::set<std::string>& used);

}  // namespace tigon::cuda
