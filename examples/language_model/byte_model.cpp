// The order-2 byte model with Witten-Bell interpolation.
#include "byte_model.hpp"

#include <array>
#include <cmath>

namespace language_model {
namespace {

constexpr std::size_t symbols = 256;
constexpr int order = 2;

struct Counts {
  std::array<std::uint32_t, symbols> of{};
  std::uint32_t total = 0, distinct = 0;
  void add(unsigned char byte) {
    if (of[byte]++ == 0) ++distinct;
    ++total;
  }
};

class ByteModel {
 public:
  // The context's last `length` bytes stand before `at`.
  Counts& counts(const std::string& bytes, std::int64_t at, int length) {
    std::size_t context = 0;
    for (int i = length; i > 0; --i) {
      context = context * symbols + static_cast<unsigned char>(bytes[static_cast<std::size_t>(at - i)]);
    }
    return tables_[static_cast<std::size_t>(length)][context];
  }
  static int usable(const Stretch& stretch, std::int64_t at) {
    return static_cast<int>(std::min<std::int64_t>(order, at - stretch.begin));
  }
  void learn(const std::string& bytes, const Stretch& stretch) {
    for (std::int64_t at = stretch.begin; at < stretch.end; ++at) {
      for (int length = 0; length <= usable(stretch, at); ++length) {
        counts(bytes, at, length).add(static_cast<unsigned char>(bytes[static_cast<std::size_t>(at)]));
      }
    }
  }
  double probability(const std::string& bytes, const Stretch& stretch, std::int64_t at) {
    const auto byte = static_cast<unsigned char>(bytes[static_cast<std::size_t>(at)]);
    double p = 1.0 / symbols;
    for (int length = 0; length <= usable(stretch, at); ++length) {
      const Counts& seen = counts(bytes, at, length);
      if (seen.total == 0) break;
      p = (seen.of[byte] + seen.distinct * p) / (seen.total + seen.distinct);
    }
    return p;
  }

 private:
  std::array<std::vector<Counts>, order + 1> tables_{std::vector<Counts>(1), std::vector<Counts>(symbols),
                                                     std::vector<Counts>(symbols* symbols)};
};

}  // namespace

double byte_model_bits(const Text& text) {
  ByteModel model;
  for (const Stretch& stretch : text.training) model.learn(text.bytes, stretch);
  double bits = 0;
  std::int64_t count = 0;
  // A block's first byte has no context and is nobody's target.
  for (const Stretch& block : text.held_out) {
    for (std::int64_t at = block.begin + 1; at < block.end; ++at, ++count) {
      bits -= std::log2(model.probability(text.bytes, block, at));
    }
  }
  return bits / static_cast<double>(count);
}

}  // namespace language_model
