// Device memory of the emulated GPU: allocations in an address space of their own, each exact in size, never reused.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/emulator/shadow.hpp"

namespace tigon::emulator {

// Generic addresses: shared, local and parameter windows lie below the first allocation.
inline constexpr std::uint64_t shared_window = 0x0000'0200'0000'0000;
inline constexpr std::uint64_t local_window = 0x0000'0300'0000'0000;
inline constexpr std::uint64_t param_window = 0x0000'0400'0000'0000;
inline constexpr std::uint64_t heap_begin = 0x0000'0a00'0000'0000;
inline constexpr std::uint64_t window_bytes = 0x0000'0001'0000'0000;

struct Buffer {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint8_t* data = nullptr;
  std::unique_ptr<std::uint8_t[]> storage;  // empty when the bytes are the host's (pinned memory)
  std::vector<std::uint8_t> state;
  Shadow shadow;
  std::vector<std::uint8_t> sectors;  // 32-byte ones that the launch `sectors_of` touched: bit 0 read, bit 1 written
  std::uint64_t sectors_of = 0;       // the launch's first gang
  bool freed = false;
  bool read_only = false;
  bool on_host = false;
  std::string name;

  // Marks the sector of an aligned access as touched by the launch; returns how often it was not before: for reading,
  // for writing.
  unsigned touch_sector(std::uint64_t launch, std::uint64_t offset, bool reads, bool writes);
};

class DeviceMemory {
 public:
  // Bytes are filled with 0xff, a NaN in every float type, and count as uninitialized.
  Buffer& allocate(std::uint64_t size, std::string name);
  Buffer& adopt_host(void* data, std::uint64_t size);  // pinned host memory, initialized, at its host address
  bool release(std::uint64_t address);                 // false if no live allocation starts there
  // The allocation that holds the address, or the nearest one below it; null if there is none.
  Buffer* nearest(std::uint64_t address);
  // The live allocation that holds [address, address + size), or null.
  Buffer* find(std::uint64_t address, std::uint64_t size);
  [[nodiscard]] std::uint64_t bytes_in_use() const { return bytes_in_use_; }
  [[nodiscard]] std::uint64_t live_allocations() const;
  void forget_stamps();  // when the gang numbers start anew

 private:
  std::map<std::uint64_t, std::unique_ptr<Buffer>> buffers_;
  std::uint64_t next_ = heap_begin;
  std::uint64_t bytes_in_use_ = 0;
};

}  // namespace tigon::emulator
