// The catalogue: each op's document, options, axes and domains, and the graphs it traces to.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dsl/graph.hpp"
#include "tigon/dtype.hpp"
#include "tigon/ops/number_range.hpp"

namespace tigon::ops {

struct AxisDefault {
  std::string_view name;
  std::int64_t extent;           // where none is asked for
  std::int64_t multiple = 1;     // every extent is a multiple of this
  std::int64_t least = 0;        // 1 where an index points into the axis
  std::int64_t test_limit = -1;  // tests go no further: the op's work grows faster than its tensors
};

// An option is text among `values`, or a number in the range `number`. The first value is the default, and `values`
// are what tests combine.
struct OptionSpec {
  std::string_view name;
  std::span<const std::string_view> values;
  NumberRange number = no_number;
  std::string_view doc = {};
};

enum class Domain : std::uint8_t {
  normal,   // mean 0, deviation 1
  uniform,  // in [low, high]
  index,    // whole numbers in [0, extent of `axis`), `ignored` of them the value of the option named by `ignore`
};
// What a test or a benchmark fills an argument with; arguments without a hint are normal.
struct InputHint {
  std::string_view input;
  Domain domain = Domain::normal;
  double low = 0;
  double high = 1;
  std::string_view axis = {};
  double ignored = 0;
  std::string_view ignore = {};
};

// What is asked of an op. Options left out have their defaults.
struct OpChoice {
  DType dtype = DType::f32;
  std::vector<std::pair<std::string, std::string>> options{};
  bool gradient = false;
};

struct OpEntry;

// A choice whose options are complete and allowed.
class Settings {
 public:
  Settings(const OpEntry& entry, const OpChoice& choice);  // throws Error naming what is allowed
  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] const std::string& text(std::string_view option) const;
  [[nodiscard]] double number(std::string_view option) const;
  [[nodiscard]] bool is(std::string_view option, std::string_view value) const { return text(option) == value; }

 private:
  DType dtype_;
  std::vector<std::pair<std::string, std::string>> options_;
};

struct OpEntry {
  std::string_view name;
  std::string_view doc;      // one line
  std::string_view formula;  // one line
  std::span<const AxisDefault> axes;
  std::string_view long_axis;  // along which tests run one very long row
  std::span<const DType> dtypes;
  std::span<const OptionSpec> options = {};
  std::span<const InputHint> hints = {};
  std::span<const std::string_view> wrt = {};             // arguments that have a gradient; empty: the op has none
  std::span<const std::string_view> differentiated = {};  // outputs that the gradient is of
  dsl::Graph (*forward)(const Settings& settings) = nullptr;

  [[nodiscard]] bool has_gradient() const { return !wrt.empty(); }
  // The traced graph. With a gradient: value_and_grad of a single number, else a vjp with an upstream for each
  // differentiated output that the options leave.
  [[nodiscard]] dsl::Graph trace(const OpChoice& choice) const;
};

// All ops, in the order in which they are listed to users.
std::span<const OpEntry* const> catalogue();
// The op of this name; throws Error listing the names.
const OpEntry& find_op(std::string_view name);

}  // namespace tigon::ops
