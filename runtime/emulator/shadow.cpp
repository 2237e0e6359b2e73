// Shadow memory: who touched which bytes last, as stamps in cells as fine as the finest access, and the state of bytes.
#include "runtime/emulator/shadow.hpp"

namespace tigon::emulator {

void Shadow::divide(unsigned shift) {
  const auto count = static_cast<std::size_t>((bytes_ + (std::uint64_t{1} << shift) - 1) >> shift);
  std::vector<Cell> finer(count);
  if (!cells_.empty()) {
    // Every access so far covered whole cells, so each part inherits its cell's stamps.
    for (std::size_t i = 0; i < count; ++i) finer[i] = cells_[i >> (shift_ - shift)];
  }
  cells_ = std::move(finer);
  shift_ = shift;
}

}  // namespace tigon::emulator
