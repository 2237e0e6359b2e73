// Shadow memory: who touched which bytes last, as stamps in cells as fine as the finest access, and the state of bytes.
#pragma once
#include <bit>
#include <cstdint>
#include <vector>

namespace tigon::emulator {

// Who accessed and when. Gangs (a block, or the blocks of a cluster) are numbered through all launches, so that stamps
// of earlier launches compare as smaller and need no clearing.
class Stamp {
 public:
  constexpr Stamp() = default;
  constexpr Stamp(std::uint64_t gang, std::uint32_t warp, std::uint32_t epoch, std::uint32_t lane, bool strong)
      : bits_(gang << 38 | std::uint64_t{warp} << 29 | std::uint64_t{epoch & epoch_limit} << 7 | lane << 2 |
              (strong ? 2U : 0U)) {}
  static constexpr std::uint64_t gang_limit = (std::uint64_t{1} << 26) - 1;
  static constexpr std::uint32_t epoch_limit = (1U << 22) - 1;
  static constexpr Stamp floor(std::uint64_t gang) { return {gang, 0, 0, 0, false}; }

  [[nodiscard]] constexpr std::uint64_t gang() const { return bits_ >> 38; }
  [[nodiscard]] constexpr std::uint32_t warp() const { return static_cast<std::uint32_t>(bits_ >> 29 & 511); }
  [[nodiscard]] constexpr std::uint32_t epoch() const { return static_cast<std::uint32_t>(bits_ >> 7 & epoch_limit); }
  [[nodiscard]] constexpr std::uint32_t lane() const { return static_cast<std::uint32_t>(bits_ >> 2 & 31); }
  [[nodiscard]] constexpr bool strong() const { return (bits_ & 2) != 0; }         // atomic, volatile or relaxed
  [[nodiscard]] constexpr bool several_lanes() const { return (bits_ & 1) != 0; }  // of the warp, not only lane()
  [[nodiscard]] constexpr bool before(Stamp other) const { return bits_ < other.bits_; }
  [[nodiscard]] constexpr bool same_thread(Stamp other) const {
    return bits_ >> 29 == other.bits_ >> 29 && lane() == other.lane() && !several_lanes();
  }
  [[nodiscard]] constexpr bool same_warp_and_epoch(Stamp other) const { return bits_ >> 7 == other.bits_ >> 7; }
  constexpr void add_lane(bool strong_access) {
    bits_ |= 1;
    if (!strong_access) bits_ &= ~std::uint64_t{2};
  }

 private:
  std::uint64_t bits_ = 0;
};

struct Cell {
  Stamp writer;
  Stamp readers[2];
};

// The cells of one allocation. A cell starts with 16 bytes and is divided when a smaller or misaligned access comes.
class Shadow {
 public:
  void reset(std::uint64_t bytes) {
    bytes_ = bytes;
    shift_ = 4;
    cells_.clear();
  }
  [[nodiscard]] unsigned shift() const { return shift_; }
  [[nodiscard]] Cell* cells() { return cells_.data(); }
  [[nodiscard]] std::size_t size() const { return cells_.size(); }
  // Makes cells fine enough for accesses of `bytes` at multiples of `bytes`, and present at all.
  void refine(unsigned access_bytes) {
    const auto shift = static_cast<unsigned>(std::countr_zero(access_bytes | 16U));
    if (shift < shift_ || cells_.empty()) divide(shift < shift_ ? shift : shift_);
  }

 private:
  void divide(unsigned shift);
  std::uint64_t bytes_ = 0;
  unsigned shift_ = 4;
  std::vector<Cell> cells_;
};

// Bits of the state kept for each byte.
inline constexpr std::uint8_t state_initialized = 1;
inline constexpr std::uint8_t state_pending = 2;  // an asynchronous copy into it was issued and not waited for
inline constexpr std::uint8_t state_forbidden = 4;

}  // namespace tigon::emulator
