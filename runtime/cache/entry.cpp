// Writes a cached kernel as one checked block of bytes and reads it back, trusting nothing.
#include "runtime/cache/entry.hpp"

#include <cstring>

namespace tigon::runtime {
namespace {

constexpr std::string_view magic = "TIGONKC\n";
constexpr std::size_t section_header_size = 16;

void put(std::string& file, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) file.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
}

std::uint64_t take(std::string_view file, std::size_t offset, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(file[offset + i])} << (8 * i);
  }
  return value;
}

std::string_view view(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::byte> copy_bytes(std::string_view text) {
  std::vector<std::byte> bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

DecodedEntry fault(std::string sentence) { return {std::nullopt, std::move(sentence)}; }

}  // namespace

const CacheSection* CacheEntry::section(std::string_view name) const {
  for (const CacheSection& candidate : sections) {
    if (candidate.name == name) return &candidate;
  }
  return nullptr;
}

std::string encode_entry(const CacheKey& key, const CacheEntry& entry) {
  std::uint64_t total = entry_header_size + entry_checksum_size + entry.sections.size() * section_header_size +
                        entry.source.size() + entry.options.size() + entry.binary.size();
  for (const CacheSection& section : entry.sections) total += section.name.size() + section.bytes.size();

  std::string file;
  file.reserve(total);
  file += magic;
  put(file, entry_format_version, 4);
  put(file, entry.sections.size(), 4);
  put(file, key.high, 8);
  put(file, key.low, 8);
  put(file, total, 8);
  put(file, entry.source.size(), 8);
  put(file, entry.options.size(), 8);
  put(file, entry.binary.size(), 8);
  for (const CacheSection& section : entry.sections) {
    put(file, section.name.size(), 8);
    put(file, section.bytes.size(), 8);
  }
  file += entry.source;
  file += entry.options;
  file += view(entry.binary);
  for (const CacheSection& section : entry.sections) {
    file += section.name;
    file += view(section.bytes);
  }
  const CacheKey checksum = hash_bytes(file);
  put(file, checksum.high, 8);
  put(file, checksum.low, 8);
  return file;
}

DecodedEntry decode_entry(const CacheKey& key, std::string_view file) {
  if (file.size() < entry_header_size + entry_checksum_size) {
    return fault(fmt::format("truncated: {} bytes, less than a header", file.size()));
  }
  if (file.substr(0, magic.size()) != magic) return fault("not a kernel cache entry");
  if (const std::uint64_t version = take(file, 8, 4); version != entry_format_version) {
    return fault(fmt::format("format version {}, this Tigon reads {}", version, entry_format_version));
  }
  if (const std::uint64_t total = take(file, 32, 8); total != file.size()) {
    return fault(fmt::format("{}: {} of {} bytes", file.size() < total ? "truncated" : "too long", file.size(), total));
  }
  const std::string_view body = file.substr(0, file.size() - entry_checksum_size);
  const CacheKey checksum = {take(file, body.size(), 8), take(file, body.size() + 8, 8)};
  if (hash_bytes(body) != checksum) return fault("checksum differs");
  if (const CacheKey found = {take(file, 16, 8), take(file, 24, 8)}; found != key) {
    return fault(fmt::format("holds another key: {}", found.hex()));
  }

  // A right checksum over wrong sizes is a writer's fault, not the disk's; it must not read out of bounds either.
  std::size_t position = entry_header_size;
  const std::uint64_t sections = take(file, 12, 4);
  if (sections * section_header_size > body.size() - position) return fault("section table too long");
  std::size_t payload = position + sections * section_header_size;
  bool fits = true;
  const auto next = [&](std::uint64_t size) -> std::string_view {
    if (!fits || size > body.size() - payload) {
      fits = false;
      return {};
    }
    const std::string_view part = body.substr(payload, size);
    payload += size;
    return part;
  };
  CacheEntry entry;
  entry.source = next(take(file, 40, 8));
  entry.options = next(take(file, 48, 8));
  entry.binary = copy_bytes(next(take(file, 56, 8)));
  for (std::uint64_t i = 0; i < sections; ++i, position += section_header_size) {
    CacheSection section;
    section.name = next(take(file, position, 8));
    section.bytes = copy_bytes(next(take(file, position + 8, 8)));
    entry.sections.push_back(std::move(section));
  }
  if (!fits || payload != body.size()) return fault("sizes do not add up");
  return {std::move(entry), {}};
}

std::string entry_title(std::string_view file_start) {
  if (file_start.size() < entry_header_size || file_start.substr(0, magic.size()) != magic) return {};
  const std::uint64_t table = take(file_start, 12, 4) * section_header_size;
  if (table > file_start.size() - entry_header_size) return {};
  std::string_view source = file_start.substr(entry_header_size + table);
  source = source.substr(0, std::min<std::uint64_t>(take(file_start, 40, 8), source.size()));
  const std::size_t first = source.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return std::string(source.substr(first, source.find_first_of("\r\n", first) - first));
}

}  // namespace tigon::runtime
