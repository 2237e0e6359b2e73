// Covers pairs greedily: each new row starts with the first pair not met yet and takes the levels that meet most.
#include "pairwise.hpp"

#include <fmt/format.h>

#include <set>

#include "dsl/reference/random_source.hpp"

namespace tigon::ops {
namespace {

class Pairs {
 public:
  explicit Pairs(const std::vector<int>& counts) : counts_(counts) {
    for (int a = 0; a < parameters(); ++a)
      for (int b = a + 1; b < parameters(); ++b)
        for (int i = 0; i < counts[a]; ++i)
          for (int j = 0; j < counts[b]; ++j) open_.insert({a, i, b, j});
  }
  [[nodiscard]] bool done() const { return open_.empty(); }

  std::vector<int> next_row() {
    std::vector<int> row(counts_.size(), -1);
    const Pair first = *open_.begin();
    row[first.a] = first.i;
    row[first.b] = first.j;
    for (int p = 0; p < parameters(); ++p) {
      if (row[p] >= 0) continue;
      int best = 0;
      int most = -1;
      for (int level = 0; level < counts_[p]; ++level) {
        row[p] = level;
        const int met = meets(row, p);
        if (met > most) {
          most = met;
          best = level;
        }
      }
      row[p] = best;
    }
    for (int a = 0; a < parameters(); ++a)
      for (int b = a + 1; b < parameters(); ++b) open_.erase({a, row[a], b, row[b]});
    return row;
  }

 private:
  struct Pair {
    int a, i, b, j;
    auto operator<=>(const Pair&) const = default;
  };
  [[nodiscard]] int parameters() const { return static_cast<int>(counts_.size()); }
  // How many open pairs of the row the parameter takes part in.
  [[nodiscard]] int meets(const std::vector<int>& row, int p) const {
    int met = 0;
    for (int q = 0; q < parameters(); ++q) {
      if (q == p || row[q] < 0) continue;
      const Pair pair = q < p ? Pair{q, row[q], p, row[p]} : Pair{p, row[p], q, row[q]};
      met += open_.contains(pair) ? 1 : 0;
    }
    return met;
  }

  std::vector<int> counts_;
  std::set<Pair> open_;
};

std::int64_t allowed(const AxisDefault& axis, std::int64_t extent) {
  if (axis.test_limit >= 0) extent = std::min(extent, axis.test_limit);
  extent *= axis.multiple;
  return std::max(extent, axis.least);
}

// Four of the tested extents, starting elsewhere for each op and axis.
std::vector<std::int64_t> extents_for(const AxisDefault& axis, int op, int number) {
  constexpr int count = static_cast<int>(std::size(tested_extents));
  std::vector<std::int64_t> levels;
  for (int i = 0; i < count && levels.size() < 4; ++i) {
    const std::int64_t extent = allowed(axis, tested_extents[(3 * op + 4 * number + i) % count]);
    if (std::find(levels.begin(), levels.end(), extent) == levels.end()) levels.push_back(extent);
  }
  return levels;
}

void add_cases(const OpEntry& entry, int op, std::vector<OpCase>& cases) {
  std::vector<std::vector<std::int64_t>> extents;
  for (const AxisDefault& axis : entry.axes) extents.push_back(extents_for(axis, op, static_cast<int>(extents.size())));
  std::vector<int> counts{static_cast<int>(entry.dtypes.size())};
  for (const OptionSpec& option : entry.options) counts.push_back(static_cast<int>(option.values.size()));
  for (const auto& levels : extents) counts.push_back(static_cast<int>(levels.size()));
  for (const std::vector<int>& row : pairwise(counts)) {
    OpCase made{&entry, {.dtype = entry.dtypes[row[0]]}, {}};
    std::size_t column = 1;
    for (const OptionSpec& option : entry.options)
      made.choice.options.emplace_back(option.name, option.values[row[column++]]);
    for (std::size_t a = 0; a < extents.size(); ++a)
      made.extents[std::string(entry.axes[a].name)] = extents[a][row[column++]];
    cases.push_back(std::move(made));
  }
  OpCase last{&entry, {.dtype = entry.dtypes[static_cast<std::size_t>(op) % entry.dtypes.size()]}, {}};
  for (const AxisDefault& axis : entry.axes)
    last.extents[std::string(axis.name)] = axis.name == entry.long_axis ? long_row : allowed(axis, 3);
  cases.push_back(std::move(last));
}

}  // namespace

std::vector<std::vector<int>> pairwise(const std::vector<int>& level_counts) {
  std::vector<std::vector<int>> rows;
  if (level_counts.size() == 1) {
    for (int i = 0; i < level_counts[0]; ++i) rows.push_back({i});
    return rows;
  }
  Pairs pairs(level_counts);
  while (!pairs.done()) rows.push_back(pairs.next_row());
  return rows;
}

std::vector<OpCase> op_cases() {
  std::vector<OpCase> cases;
  int op = 0;
  for (const OpEntry* entry : catalogue()) add_cases(*entry, op++, cases);
  return cases;
}

std::vector<OpCase> op_grid(const OpEntry& entry, int draws) {
  std::vector<OpCase> cases;
  dsl::RandomSource random(1);
  std::vector<std::size_t> levels(entry.options.size(), 0);
  for (bool more = true; more;) {
    for (const DType dtype : entry.dtypes) {
      for (int draw = 0; draw < draws; ++draw) {
        OpCase made{&entry, {.dtype = dtype}, {}};
        for (std::size_t i = 0; i < levels.size(); ++i)
          made.choice.options.emplace_back(entry.options[i].name, entry.options[i].values[levels[i]]);
        for (const AxisDefault& axis : entry.axes) {
          const auto drawn = static_cast<std::size_t>(random.below(std::size(tested_extents)));
          made.extents[std::string(axis.name)] = allowed(axis, tested_extents[drawn]);
        }
        cases.push_back(std::move(made));
      }
    }
    more = false;
    for (std::size_t i = 0; i < levels.size() && !more; ++i) {
      more = ++levels[i] < entry.options[i].values.size();
      if (!more) levels[i] = 0;
    }
  }
  return cases;
}

std::string OpCase::name() const {
  std::string text = fmt::format("{} {}", entry->name, tigon::name(choice.dtype));
  for (const auto& [key, value] : choice.options) text += fmt::format(" {}={}", key, value);
  for (const auto& [axis, extent] : extents) text += fmt::format(" {}:{}", axis, extent);
  return text;
}

}  // namespace tigon::ops
