// Hashes a key's parts with XXH3; the only file that includes xxhash, so that it stays header-only and private.
#include "runtime/cache/key.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "runtime/cache/entry.hpp"

namespace tigon::runtime {
namespace {

void append_number(std::string& bytes, std::uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) bytes.push_back(static_cast<char>((value >> shift) & 0xff));
}

}  // namespace

std::string CacheKey::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

CacheKey hash_bytes(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

CacheKey cache_key(std::span<const std::string_view> parts) {
  std::string bytes = "tigon kernel";
  append_number(bytes, cache_version);
  append_number(bytes, entry_format_version);
  append_number(bytes, parts.size());
  for (const std::string_view part : parts) {
    append_number(bytes, part.size());
    bytes += part;
  }
  return hash_bytes(bytes);
}

CacheKey cache_key(std::initializer_list<std::string_view> parts) {
  return cache_key(std::span<const std::string_view>(parts.begin(), parts.size()));
}

std::optional<CacheKey> parse_key(std::string_view hex) {
  if (hex.size() != 32) return std::nullopt;
  CacheKey key;
  for (std::size_t i = 0; i < 32; ++i) {
    const char digit = hex[i];
    std::uint64_t value = 0;
    if (digit >= '0' && digit <= '9') {
      value = static_cast<std::uint64_t>(digit - '0');
    } else if (digit >= 'a' && digit <= 'f') {
      value = static_cast<std::uint64_t>(digit - 'a') + 10;
    } else {
      return std::nullopt;
    }
    std::uint64_t& half = i < 16 ? key.high : key.low;
    half = half * 16 + value;
  }
  return key;
}

}  // namespace tigon::runtime
