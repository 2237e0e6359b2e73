// Checks a nest against the rules of the language.
#pragma once
#include <string>
#include <vector>

#include "codegen/loops/nest.hpp"

namespace tigon::loops {

// One sentence for each broken rule; empty for a legal nest.
std::vector<std::string> faults(const Nest& nest);
// Throws Error{internal} with the sentences and the nest's text, if there are any.
void verify(const Nest& nest);

}  // namespace tigon::loops
