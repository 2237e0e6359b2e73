// The names of the files in the cache's folder; nothing else in it is ever touched.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "runtime/cache/key.hpp"

namespace tigon::runtime {

inline constexpr std::string_view entry_suffix = ".tigon";  // KEY.tigon: a kernel
inline constexpr std::string_view lock_suffix = ".lock";    // KEY.lock: being compiled
inline constexpr std::string_view part_suffix = ".part";    // KEY.NUMBER.part: being written
inline constexpr const char* log_name = "compiles.log";     // a line "KEY PROCESS" per compile

inline std::string entry_name(const CacheKey& key) { return key.hex() + std::string(entry_suffix); }

inline std::optional<CacheKey> key_of_entry(std::string_view name) {
  if (name.size() != 32 + entry_suffix.size() || !name.ends_with(entry_suffix)) return std::nullopt;
  return parse_key(name.substr(0, 32));
}

inline bool is_lock_name(std::string_view name) {
  return name.size() == 32 + lock_suffix.size() && name.ends_with(lock_suffix) && parse_key(name.substr(0, 32));
}

inline bool is_part_name(std::string_view name) {
  return name.size() == 32 + 17 + part_suffix.size() && name[32] == '.' && name.ends_with(part_suffix) &&
         parse_key(name.substr(0, 32));
}

}  // namespace tigon::runtime
