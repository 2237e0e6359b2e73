// The written subset of LLVM IR that generated CPU kernels may use: it means the same in LLVM 15 to 22 and never
// becomes a library call on x86-64-v3 or newer.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace tigon::llvm {

enum class SubsetForm {
  unary,      // name <type> x
  binary,     // name <type> x, y
  intrinsic,  // call <type> @name.<suffix>(operands of the same type)
  compare,    // name predicate <type> x, y
  cast,       // name <from> x to <to>
  memory,     // loads, stores and the masked intrinsics
  other,      // control flow, vector rearrangement, addresses
};

struct SubsetRow {
  std::string_view name;
  SubsetForm form;
  // Element types, scalar or in vectors of up to 64 bytes (casts: of the wider side): "f32 f64"; casts "from>to";
  // comparisons list predicates after a '|'. Empty where types do not matter.
  std::string_view elements;
  int operands = 0;  // of an intrinsic
};

std::span<const SubsetRow> subset();

// "" when every line of the module lies in the subset; else the first line that does not, with its number and the
// reason.
std::string outside_subset(std::string_view module_text);

}  // namespace tigon::llvm
