// Binds the function table to an open LLVM library.
#include "runtime/llvm/api.hpp"

namespace tigon::runtime::llvm_c {

std::string Api::bind(const Library& library) {
  const SymbolSlot slots[] = {
#define TIGON_LLVM_SLOT(field, name, required, ...) {#name, required, reinterpret_cast<void**>(&field)},
      TIGON_LLVM_API(TIGON_LLVM_SLOT)
#undef TIGON_LLVM_SLOT
  };
  return bind_symbols(library, slots);
}

}  // namespace tigon::runtime::llvm_c
