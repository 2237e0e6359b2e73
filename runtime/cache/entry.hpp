// A cached kernel and the bytes of the file that holds it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/cache/key.hpp"

namespace tigon::runtime {

// A further result of the same compile, e.g. "ptx" beside a cubin.
struct CacheSection {
  std::string name{};
  std::vector<std::byte> bytes{};
  bool operator==(const CacheSection&) const = default;
};

struct CacheEntry {
  std::string source{};   // the full text, so that a cached binary can always be read
  std::string options{};  // as given to the compiler
  std::vector<std::byte> binary{};
  std::vector<CacheSection> sections{};
  bool operator==(const CacheEntry&) const = default;
  [[nodiscard]] const CacheSection* section(std::string_view name) const;  // null where there is none
};

// The file, all numbers little-endian:
//   magic "TIGONKC\n" | u32 format version | u32 sections | u64 key high, low | u64 file size
//   | u64 sizes of source, options, binary | per section u64 sizes of name, bytes
//   | source | options | binary | per section name, bytes | u64 XXH3_128 high, low of all that precedes
inline constexpr std::uint32_t entry_format_version = 1;
inline constexpr std::size_t entry_header_size = 64;
inline constexpr std::size_t entry_checksum_size = 16;
inline constexpr std::uint64_t entry_largest_size = std::uint64_t{1} << 30;  // a larger file is no entry of ours

std::string encode_entry(const CacheKey& key, const CacheEntry& entry);

struct DecodedEntry {
  std::optional<CacheEntry> entry{};
  std::string fault{};  // what is wrong with the content, where there is no entry
};
DecodedEntry decode_entry(const CacheKey& key, std::string_view file);

// The first line of the source that is not blank, from a file's first bytes; unverified, for listings only.
std::string entry_title(std::string_view file_start);

}  // namespace tigon::runtime
