// The cache's key: a 128-bit hash of everything that a kernel's binary depends on.
#pragma once
#include <compare>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tigon::runtime {

// Raised by hand when the same text would be compiled to something else, e.g. after a change of how a launch passes
// its parameters. A build stamp in its place would make every rebuild of Tigon start cold.
inline constexpr std::uint32_t cache_version = 1;

struct CacheKey {
  std::uint64_t high = 0, low = 0;
  auto operator<=>(const CacheKey&) const = default;
  [[nodiscard]] std::string hex() const;  // 32 digits, the entry's file name
};

// Parts in a fixed order: text, options, compiler version and build, architecture or CPU features. Each is hashed with
// its length, so {"ab", "c"} and {"a", "bc"} differ; cache_version and the file format's version are mixed in here.
CacheKey cache_key(std::span<const std::string_view> parts);
CacheKey cache_key(std::initializer_list<std::string_view> parts);

std::optional<CacheKey> parse_key(std::string_view hex);

// XXH3_128bits of the bytes: the entry's checksum.
CacheKey hash_bytes(std::string_view bytes);

}  // namespace tigon::runtime
