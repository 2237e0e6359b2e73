// The entry's file format: round trip, and that no damage goes unnoticed.
#include "runtime/cache/entry.hpp"

#include "support.hpp"

using namespace tigon::runtime;
using namespace cache_test;

TEST_CASE("an entry survives the round trip", "[cache][entry]") {
  const CacheKey key = key_number(3);
  const CacheEntry entry = entry_number(3);
  const std::string file = encode_entry(key, entry);
  CHECK(file.substr(0, 8) == "TIGONKC\n");
  CHECK(file.find(entry.source) != std::string::npos);
  CHECK(file == encode_entry(key, entry));
  const DecodedEntry decoded = decode_entry(key, file);
  REQUIRE(decoded.entry);
  CHECK(*decoded.entry == entry);
  CHECK(decoded.fault.empty());
  REQUIRE(decoded.entry->section("ptx") != nullptr);
  CHECK(decoded.entry->section("ptx")->bytes.size() == 50);
  CHECK(decoded.entry->section("cubin") == nullptr);
  CHECK(entry_title(file) == "// kernel number 3");
  CHECK(entry_title(file.substr(0, 97)).empty());  // ends after the source's first byte, a line break
  CHECK(entry_title(file.substr(0, 90)).empty());  // ends within the table of sections
  CHECK(entry_title("#!/bin/sh\n").empty());
  const DecodedEntry empty = decode_entry(key, encode_entry(key, CacheEntry{}));
  REQUIRE(empty.entry);
  CHECK(*empty.entry == CacheEntry{});
}

TEST_CASE("every truncation of an entry is noticed", "[cache][entry]") {
  const CacheKey key = key_number(1);
  const std::string file = encode_entry(key, entry_number(1));
  for (std::size_t length = 0; length < file.size(); ++length) {
    const DecodedEntry decoded = decode_entry(key, std::string_view(file).substr(0, length));
    if (decoded.entry || decoded.fault.find("truncated") == std::string::npos) FAIL("accepted " << length << " bytes");
  }
  CHECK(decode_entry(key, file + "x").fault.find("too long") == 0);
}

TEST_CASE("every flipped bit of an entry is noticed", "[cache][entry]") {
  const CacheKey key = key_number(1);
  std::string file = encode_entry(key, entry_number(1));
  for (std::size_t bit = 0; bit < file.size() * 8; ++bit) {
    const char mask = static_cast<char>(1U << (bit % 8));
    file[bit / 8] = static_cast<char>(file[bit / 8] ^ mask);
    if (decode_entry(key, file).entry) FAIL("accepted a flip of bit " << bit);
    file[bit / 8] = static_cast<char>(file[bit / 8] ^ mask);
  }
  CHECK(decode_entry(key, file).entry);
}

namespace {

void put_number(std::string& file, std::size_t offset, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) file[offset + static_cast<std::size_t>(i)] = static_cast<char>(value >> (8 * i));
}

// Makes the checksum right again, so that only the checks behind it can refuse.
void reseal(std::string& file) {
  const CacheKey checksum = hash_bytes(std::string_view(file).substr(0, file.size() - 16));
  put_number(file, file.size() - 16, checksum.high, 8);
  put_number(file, file.size() - 8, checksum.low, 8);
}

}  // namespace

TEST_CASE("foreign keys, other versions and sizes that do not add up are refused", "[cache][entry]") {
  const CacheKey key = key_number(1);
  const std::string file = encode_entry(key, entry_number(1));
  CHECK(decode_entry(key_number(2), file).fault == "holds another key: " + key.hex());
  CHECK(decode_entry(key, "MZ" + file.substr(2)).fault == "not a kernel cache entry");

  const auto with = [&](std::size_t offset, std::uint64_t value, int bytes) {
    std::string changed = file;
    put_number(changed, offset, value, bytes);
    reseal(changed);
    return decode_entry(key, changed);
  };
  CHECK(with(8, 1, 4).entry);  // resealing alone changes nothing
  CHECK(with(8, 2, 4).fault == "format version 2, this Tigon reads 1");
  CHECK(with(8, 0, 4).fault == "format version 0, this Tigon reads 1");
  CHECK(with(12, 0xffffffff, 4).fault == "section table too long");
  CHECK(with(12, 1, 4).fault == "sizes do not add up");
  for (const std::size_t offset : {40, 48, 56, 64, 72, 80, 88}) {
    for (const std::uint64_t size : {std::uint64_t{0xffffffffffffffff}, std::uint64_t{1} << 40, std::uint64_t{999}}) {
      CHECK(with(offset, size, 8).fault == "sizes do not add up");
    }
  }
}
