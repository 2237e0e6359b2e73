// The key: what it depends on, and its printed form.
#include <set>

#include "support.hpp"

using namespace tigon::runtime;

TEST_CASE("a key depends on every part, on its place and on where parts end", "[cache][key]") {
  const CacheKey key = cache_key({"text", "-O3", "nvrtc 12.4", "sm_90a"});
  CHECK(key == cache_key({"text", "-O3", "nvrtc 12.4", "sm_90a"}));
  CHECK(key != cache_key({"texu", "-O3", "nvrtc 12.4", "sm_90a"}));
  CHECK(key != cache_key({"text", "-O2", "nvrtc 12.4", "sm_90a"}));
  CHECK(key != cache_key({"text", "-O3", "nvrtc 12.5", "sm_90a"}));
  CHECK(key != cache_key({"text", "-O3", "nvrtc 12.4", "sm_80"}));
  CHECK(key != cache_key({"-O3", "text", "nvrtc 12.4", "sm_90a"}));
  CHECK(cache_key({"ab", "c"}) != cache_key({"a", "bc"}));
  CHECK(cache_key({"ab", ""}) != cache_key({"", "ab"}));
  CHECK(cache_key({"ab", ""}) != cache_key({"ab"}));
  CHECK(cache_key({}) != cache_key({""}));
}

TEST_CASE("keys of ten thousand texts differ in both halves", "[cache][key]") {
  std::set<std::uint64_t> high, low;
  for (int i = 0; i < 10000; ++i) {
    const CacheKey key = cache_key({std::to_string(i)});
    high.insert(key.high);
    low.insert(key.low);
  }
  CHECK(high.size() == 10000);
  CHECK(low.size() == 10000);
}

TEST_CASE("a key is printed as 32 digits and read back", "[cache][key]") {
  const CacheKey key{0x0123456789abcdefULL, 0x00000000000000f0ULL};
  CHECK(key.hex() == "0123456789abcdef00000000000000f0");
  CHECK(parse_key(key.hex()) == key);
  CHECK_FALSE(parse_key("0123456789abcdef00000000000000f"));
  CHECK_FALSE(parse_key("0123456789abcdef00000000000000f00"));
  CHECK_FALSE(parse_key("0123456789ABCDEF00000000000000f0"));
  CHECK_FALSE(parse_key("0123456789abcdeg00000000000000f0"));
}

TEST_CASE("the checksum is XXH3_128bits", "[cache][key]") {
  // The published digest of the empty input with seed 0: 99aa06d3014798d86001c324468d497f.
  CHECK(hash_bytes("").hex() == "99aa06d3014798d86001c324468d497f");
}
