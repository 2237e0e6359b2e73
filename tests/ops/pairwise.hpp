// A deterministic set of cases over the catalogue in which every pair of option values, dtypes and extents meets.
#pragma once
#include <string>
#include <vector>

#include "ops/inputs.hpp"

namespace tigon::ops {

// Rows of level numbers, one column per parameter, such that for every two parameters every two levels meet in a row.
std::vector<std::vector<int>> pairwise(const std::vector<int>& level_counts);

struct OpCase {
  const OpEntry* entry = nullptr;
  OpChoice choice;  // without gradient
  NamedExtents extents;
  [[nodiscard]] std::string name() const;
};

// At most 300 cases: for each op a pairwise cover of its options, its dtypes and four extents per axis, which differ
// from op to op; and one case with a row of 70001.
std::vector<OpCase> op_cases();
// Every combination of an op's options and dtypes, each at `draws` extents drawn from those tested.
std::vector<OpCase> op_grid(const OpEntry& entry, int draws);

inline constexpr std::int64_t tested_extents[] = {0, 127, 1, 128, 3, 129, 7, 1023, 41, 123};
inline constexpr std::int64_t long_row = 70001;

}  // namespace tigon::ops
