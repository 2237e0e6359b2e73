// The readable form of a nest, the same for equal nests.
#pragma once
#include <string>

#include "codegen/loops/nest.hpp"

namespace tigon::loops {

std::string print(const Nest& nest);
// One expression as the nest's text shows it, without names that a `let` gives.
std::string print_expr(const Nest& nest, ExprId id);

}  // namespace tigon::loops
