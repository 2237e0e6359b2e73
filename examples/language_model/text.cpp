// Reads the licence texts or a file, holds blocks out, and cuts windows.
#include "text.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numbers>
#include <numeric>
#include <set>

#include "options.hpp"

namespace language_model {
namespace {

constexpr std::int64_t block_bytes = 4096;
constexpr std::int64_t blocks_for_one_held_out = 10;

// Far more than a model of this size can learn from; also where a file that never ends is left.
constexpr std::size_t most_bytes = std::size_t{256} << 20;

std::string read_file(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw UsageError(path.string() + " is a folder; give a file");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UsageError("cannot read " + path.string() + ": " + std::strerror(errno));
  std::string text;
  std::vector<char> piece(1 << 20);
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())) || file.gcount() > 0) {
    text.append(piece.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > most_bytes) {
      throw UsageError(path.string() + " has more than " + std::to_string(most_bytes >> 20) +
                       " MiB, or no end; give a smaller text");
    }
  }
  if (file.bad()) throw UsageError("cannot read " + path.string() + ": " + std::strerror(errno));
  return text;
}

// Each distinct file of the folder once, by name: several names may lead to one file.
std::vector<std::filesystem::path> distinct_files(const std::string& folder) {
  std::set<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::filesystem::path file = std::filesystem::canonical(entry.path(), error);
    if (!error && std::filesystem::is_regular_file(file)) files.insert(file);
  }
  return {files.begin(), files.end()};
}

std::int64_t total_size(const std::vector<Stretch>& stretches) {
  return std::accumulate(stretches.begin(), stretches.end(), std::int64_t{0},
                         [](std::int64_t sum, const Stretch& stretch) { return sum + stretch.size(); });
}

}  // namespace

std::uint64_t Random::bits() {
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
double Random::uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
double Random::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}
std::int64_t Random::below(std::int64_t limit) {
  return static_cast<std::int64_t>(uniform() * static_cast<double>(limit));
}

std::int64_t Text::training_bytes() const { return total_size(training); }
std::int64_t Text::held_out_bytes() const { return total_size(held_out); }

Text read_text(const std::string& file) {
  Text text;
  if (file.empty()) {
    const std::string folder = "/usr/share/common-licenses";
    const auto files = distinct_files(folder);
    for (const auto& path : files) text.bytes += read_file(path);
    text.source = std::to_string(files.size()) + " licences of " + folder;
    if (files.empty()) throw UsageError("found no licence texts in " + folder + "; give a text with --text");
  } else {
    text.bytes = read_file(file);
    text.source = file;
  }
  const auto size = static_cast<std::int64_t>(text.bytes.size());
  for (std::int64_t begin = 0; begin < size; begin += block_bytes) {
    const Stretch block{begin, std::min(begin + block_bytes, size)};
    const bool held = begin / block_bytes % blocks_for_one_held_out == blocks_for_one_held_out - 1;
    std::vector<Stretch>& part = held ? text.held_out : text.training;
    if (!held && !part.empty() && part.back().end == begin) {
      part.back().end = block.end;
    } else {
      part.push_back(block);
    }
  }
  if (text.held_out.empty()) {
    throw UsageError("the text has " + std::to_string(size) + " bytes; at least " +
                     std::to_string(block_bytes * blocks_for_one_held_out) + " are needed");
  }
  return text;
}

Windows::Windows(const Text& text, std::int64_t batch, std::int64_t context)
    : text_(text), batch_(batch), context_(context) {
  for (const Stretch& block : text.held_out) {
    for (std::int64_t at = block.begin; at + 1 < block.end; at += context) {
      held_out_.push_back({at, std::min(at + context + 1, block.end)});
    }
  }
}

std::int64_t Windows::held_out_targets() const {
  return total_size(held_out_) - static_cast<std::int64_t>(held_out_.size());
}

void Windows::cut(const Stretch& window, std::int32_t* bytes, std::int32_t* target) const {
  const auto byte = [&](std::int64_t at) {
    return static_cast<std::int32_t>(static_cast<unsigned char>(text_.bytes[static_cast<std::size_t>(at)]));
  };
  for (std::int64_t t = 0; t < context_; ++t) {
    const std::int64_t at = window.begin + t;
    bytes[t] = at < window.end ? byte(at) : 0;
    target[t] = at + 1 < window.end ? byte(at + 1) : nothing_to_predict;
  }
}

std::int64_t Windows::training_places() const {
  std::int64_t places = 0;
  for (const Stretch& stretch : text_.training) places += std::max<std::int64_t>(0, stretch.size() - context_);
  return places;
}

void Windows::draw(Random& random, std::int32_t* bytes, std::int32_t* target) const {
  const std::int64_t places = training_places();
  for (std::int64_t row = 0; row < batch_; ++row) {
    std::int64_t place = random.below(places);
    for (const Stretch& stretch : text_.training) {
      const std::int64_t here = std::max<std::int64_t>(0, stretch.size() - context_);
      if (place < here) {
        const std::int64_t begin = stretch.begin + place;
        cut({begin, begin + context_ + 1}, bytes + row * context_, target + row * context_);
        break;
      }
      place -= here;
    }
  }
}

void Windows::held_out(std::int64_t first, std::int32_t* bytes, std::int32_t* target) const {
  for (std::int64_t row = 0; row < batch_; ++row) {
    const std::int64_t number = first + row;
    const Stretch window = number < held_out_count() ? held_out_[static_cast<std::size_t>(number)] : Stretch{};
    cut(window, bytes + row * context_, target + row * context_);
  }
}

}  // namespace language_model
