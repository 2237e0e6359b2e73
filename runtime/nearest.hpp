// Suggests the names that a mistyped one may have meant.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tigon::runtime {

// Single-character insertions, deletions, replacements and swaps of neighbours between two words, letters' case aside.
int edit_distance(std::string_view a, std::string_view b);

// At most three candidates that are close to the word or begin with it, the closest first.
std::vector<std::string> nearest_names(std::string_view word, std::span<const std::string> candidates);

// "Did you mean `tokens` or `vocab`?", or "" when nothing is near.
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

}  // namespace tigon::runtime
