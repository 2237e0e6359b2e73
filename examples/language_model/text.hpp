// The text to learn: bytes of files, the part held out, and batches of windows cut from either.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace language_model {

// Small and the same on every machine, unlike the standard distributions.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t bits();  // splitmix64
  double uniform();      // in [0, 1)
  double normal();
  std::int64_t below(std::int64_t limit);

 private:
  std::uint64_t state_;
};

// A stretch of consecutive bytes [begin, end) of the text.
struct Stretch {
  std::int64_t begin = 0, end = 0;
  [[nodiscard]] std::int64_t size() const { return end - begin; }
};

struct Text {
  std::string source;  // where it came from, for people
  std::string bytes;
  std::vector<Stretch> training, held_out;  // no window crosses from one to the other
  [[nodiscard]] std::int64_t training_bytes() const;
  [[nodiscard]] std::int64_t held_out_bytes() const;
};

// The file, or without one the distinct licence texts of /usr/share/common-licenses. Every tenth block of 4 KiB is held
// out. Throws UsageError where there is no text, or too little or too much of it.
Text read_text(const std::string& file);

inline constexpr std::int32_t nothing_to_predict = -100;

// Windows of `context` bytes and the byte that follows each of these, row by row.
class Windows {
 public:
  Windows(const Text& text, std::int64_t batch, std::int64_t context);
  [[nodiscard]] std::int64_t training_places() const;  // where a training window may begin
  // Training windows at random places.
  void draw(Random& random, std::int32_t* bytes, std::int32_t* target) const;
  // Held-out windows number first, first + 1, ...; each byte but a block's first is a target once. Rows past the last
  // window and places past a block's end have nothing to predict.
  void held_out(std::int64_t first, std::int32_t* bytes, std::int32_t* target) const;
  [[nodiscard]] std::int64_t held_out_count() const { return static_cast<std::int64_t>(held_out_.size()); }
  [[nodiscard]] std::int64_t held_out_targets() const;

 private:
  void cut(const Stretch& window, std::int32_t* bytes, std::int32_t* target) const;
  const Text& text_;
  std::int64_t batch_, context_;
  std::vector<Stretch> held_out_;
};

}  // namespace language_model
