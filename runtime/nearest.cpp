// Edit distances between names.
#include "runtime/nearest.hpp"

namespace tigon::runtime {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool begins_with(std::string_view name, std::string_view word) {
  if (word.size() < 3 || word.size() > name.size()) return false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (lower(name[i]) != lower(word[i])) return false;
  }
  return true;
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the table: the row before last serves swaps.
  std::vector<int> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::vector<std::string> nearest_names(std::string_view word, std::span<const std::string> candidates) {
  std::vector<std::pair<int, std::string>> near;
  const std::string_view start = word.substr(0, 64);  // names are short; what is longer is far from all of them
  for (const std::string& candidate : candidates) {
    int distance = edit_distance(start, candidate);
    if (begins_with(candidate, start)) distance = 1;
    const int limit = std::max(1, static_cast<int>(std::max(start.size(), candidate.size())) / 3);
    if (distance <= limit) near.emplace_back(distance, candidate);
  }
  std::stable_sort(near.begin(), near.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (std::size_t i = 0; i < near.size() && i < 3; ++i) names.push_back(near[i].second);
  return names;
}

std::string suggestion(std::string_view word, std::span<const std::string> candidates) {
  const std::vector<std::string> names = nearest_names(word, candidates);
  if (names.empty()) return "";
  std::string text = "Did you mean ";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += "`" + names[i] + "`";
  }
  return text + "?";
}

}  // namespace tigon::runtime
