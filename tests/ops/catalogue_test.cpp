// Every op traces under every pair of choices, prints the same twice, and refuses what it does not know.
#include <set>

#include "dsl/print.hpp"
#include "pairwise.hpp"
#include "tigon/error.hpp"

using namespace tigon;
using namespace tigon::ops;

namespace {

std::string message_of(const OpEntry& entry, const OpChoice& choice) {
  try {
    static_cast<void>(entry.trace(choice));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool holds(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("pairwise: every two levels of every two parameters meet") {
  const std::vector<int> counts{3, 2, 4, 2, 3};
  std::set<std::array<int, 4>> met;
  const auto rows = pairwise(counts);
  for (const auto& row : rows) {
    REQUIRE(row.size() == counts.size());
    for (int a = 0; a < 5; ++a)
      for (int b = a + 1; b < 5; ++b) met.insert({a, row[a], b, row[b]});
  }
  std::size_t expected = 0;
  for (int a = 0; a < 5; ++a)
    for (int b = a + 1; b < 5; ++b) expected += static_cast<std::size_t>(counts[a] * counts[b]);
  CHECK(met.size() == expected);
  CHECK(rows.size() <= 16);
  CHECK(pairwise(counts) == rows);
}

TEST_CASE("op cases: few, all extents, every option value") {
  const std::vector<OpCase> cases = op_cases();
  CHECK(cases.size() <= 300);
  std::set<std::int64_t> extents;
  std::set<std::string> values;
  for (const OpCase& one : cases) {
    for (const auto& [axis, extent] : one.extents) extents.insert(extent);
    for (const auto& [key, value] : one.choice.options)
      values.insert(std::string(one.entry->name) + "/" + key + "/" + value);
  }
  for (const std::int64_t extent : tested_extents) CHECK(extents.contains(extent));
  CHECK(extents.contains(long_row));
  std::size_t expected = 0;
  for (const OpEntry* entry : catalogue())
    for (const OptionSpec& option : entry->options) expected += option.values.size();
  CHECK(values.size() == expected);
}

TEST_CASE("catalogue: names differ and entries are complete") {
  std::set<std::string_view> names;
  for (const OpEntry* entry : catalogue()) {
    INFO(entry->name);
    CHECK(names.insert(entry->name).second);
    CHECK(!entry->doc.empty());
    CHECK(!entry->formula.empty());
    CHECK(&find_op(entry->name) == entry);
    CHECK(entry->has_gradient() == !entry->differentiated.empty());
    const dsl::Graph graph = entry->trace({.dtype = entry->dtypes[0]});
    CHECK(graph.name == entry->name);
    const auto has_axis = [&](std::string_view name) {
      return std::any_of(graph.axes.begin(), graph.axes.end(), [&](const auto& axis) { return axis.name == name; });
    };
    for (const AxisDefault& axis : entry->axes) CHECK(has_axis(axis.name));
    CHECK(has_axis(entry->long_axis));
  }
}

TEST_CASE("catalogue: every case traces, resolves its extents and prints the same twice") {
  for (const OpCase& one : op_cases()) {
    INFO(one.name());
    for (const bool gradient : {false, true}) {
      if (gradient && !one.entry->has_gradient()) continue;
      OpChoice choice = one.choice;
      choice.gradient = gradient;
      const dsl::Graph graph = one.entry->trace(choice);
      const std::string text = dsl::print(graph);
      CHECK(text == dsl::print(one.entry->trace(choice)));
      CHECK(holds(text, gradient ? "return grad." : "return "));
      const dsl::Extents extents = extents_of(*one.entry, graph, one.extents);
      for (const std::int64_t extent : extents) CHECK(extent >= 0);
    }
  }
}

TEST_CASE("catalogue: what an op does not know is refused with what it knows") {
  CHECK_THROWS_AS(find_op("softmaxx"), Error);
  const OpEntry& norm = find_op("rms_norm");
  CHECK(holds(message_of(norm, {.dtype = DType::i32}), "f32, bf16, f16"));
  CHECK(holds(message_of(norm, {.options = {{"castin", "llama"}}}), "casting, offset, epsilon"));
  CHECK(holds(message_of(norm, {.options = {{"casting", "lama"}}}), "llama, gemma, none"));
  CHECK(holds(message_of(norm, {.options = {{"epsilon", "small"}}}), "a number"));
  CHECK(message_of(norm, {.options = {{"epsilon", "3e-5"}}}).empty());
  CHECK(holds(message_of(find_op("adamw"), {.gradient = true}), "no gradient"));
  const dsl::Graph graph = norm.trace({});
  CHECK_THROWS_AS(extents_of(norm, graph, {{"vocab", 3}}), Error);
  CHECK_THROWS_AS(extents_of(find_op("rope"), find_op("rope").trace({}), {{"channels", 3}}), Error);
}

TEST_CASE("catalogue: options that are off leave nothing in the graph") {
  const OpEntry& entry = find_op("cross_entropy");
  const std::string plain = dsl::print(entry.trace({}));
  CHECK(!holds(plain, "tanh"));
  CHECK(!holds(plain, "extent(vocab)"));
  CHECK(!holds(plain, "finish lse"));
  CHECK(holds(dsl::print(entry.trace({.options = {{"softcap", "30"}}})), "tanh"));
  CHECK(holds(dsl::print(entry.trace({.options = {{"smoothing", "0.3"}}})), "extent(vocab)"));
  CHECK(holds(dsl::print(entry.trace({.options = {{"z_loss", "1e-4"}}})), "finish lse"));
}
