// Spells a lowered nest as LLVM IR text in the written subset; it decides nothing.
#pragma once
#include <string>

#include "codegen/lower/lowered.hpp"

namespace tigon::llvm {

// A complete module: head comment, `define void @NAME(ptr %parameters, i64 %first, i64 %last, ptr %scratch)`, and the
// prelude functions that it calls.
std::string print_llvm(const lower::Lowered& lowered);

}  // namespace tigon::llvm
