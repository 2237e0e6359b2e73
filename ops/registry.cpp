// The list of ops, the check of what is asked of them, and their gradients.
#include "ops/registry.hpp"

#include <fmt/format.h>

#include <charconv>

#include "ops/entries.hpp"
#include "tigon/detail/differentiated.hpp"
#include "tigon/error.hpp"

namespace tigon::ops {
namespace {

constexpr const OpEntry* entries[] = {
    &softmax_entry,  &log_softmax_entry,  &cross_entropy_entry, &linear_cross_entropy_entry,
    &rms_norm_entry, &add_rms_norm_entry, &layer_norm_entry,    &rope_entry,
    &swiglu_entry,   &geglu_entry,        &embedding_entry,     &attention_entry,
    &adamw_entry,    &global_norm_entry,
};

template <class Items, class Name>
std::string listed(const Items& items, Name name) {
  std::string text;
  for (const auto& item : items) text += fmt::format("{}{}", text.empty() ? "" : ", ", name(item));
  return text;
}

std::optional<double> parsed_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "mean, sum, none", or those and the range
std::string values_text(const OptionSpec& option) {
  std::vector<std::string_view> words;  // values that the range does not cover
  for (const std::string_view value : option.values) {
    if (option.number.empty() || !parsed_number(std::string(value))) words.push_back(value);
  }
  const std::string listed_words = listed(words, [](std::string_view value) { return value; });
  if (option.number.empty()) return "one of " + listed_words;
  return words.empty() ? option.number.text() : listed_words + ", or " + option.number.text();
}

}  // namespace

std::span<const OpEntry* const> catalogue() { return entries; }

const OpEntry& find_op(std::string_view name) {
  for (const OpEntry* entry : entries)
    if (entry->name == name) return *entry;
  throw Error(
      {.function = std::string(name), .expected = listed(entries, [](const OpEntry* entry) { return entry->name; })},
      "the catalogue has no op of this name");
}

Settings::Settings(const OpEntry& entry, const OpChoice& choice) : dtype_(choice.dtype) {
  const std::string function(entry.name);
  if (std::find(entry.dtypes.begin(), entry.dtypes.end(), choice.dtype) == entry.dtypes.end()) {
    throw Error({.function = function,
                 .found = std::string(name(choice.dtype)),
                 .expected = listed(entry.dtypes, [](DType dtype) { return name(dtype); })},
                "the op is not made for this dtype");
  }
  for (const OptionSpec& option : entry.options) options_.emplace_back(option.name, option.values.front());
  for (const auto& [key, value] : choice.options) {
    const auto option =
        std::find_if(entry.options.begin(), entry.options.end(), [&](const OptionSpec& o) { return o.name == key; });
    if (option == entry.options.end()) {
      throw Error({.function = function,
                   .argument = key,
                   .expected = listed(entry.options, [](const OptionSpec& o) { return o.name; })},
                  "the op has no option of this name");
    }
    const bool listed_value = std::find(option->values.begin(), option->values.end(), value) != option->values.end();
    const std::optional<double> number = parsed_number(value);
    if (!listed_value && !(number && option->number.holds(*number))) {
      throw Error({.function = function, .argument = key, .found = value, .expected = values_text(*option)},
                  "the option does not take this value");
    }
    options_[static_cast<std::size_t>(option - entry.options.begin())].second = value;
  }
}

const std::string& Settings::text(std::string_view option) const {
  for (const auto& [key, value] : options_)
    if (key == option) return value;
  throw Error({.kind = ErrorKind::internal, .argument = std::string(option)}, "an op reads an option it does not have");
}

double Settings::number(std::string_view option) const {
  const std::string& value = text(option);
  double result = 0;
  std::from_chars(value.data(), value.data() + value.size(), result);
  return result;
}

dsl::Graph OpEntry::trace(const OpChoice& choice) const {
  dsl::Graph graph = forward(Settings(*this, choice));
  if (!choice.gradient) return graph;
  if (!has_gradient()) throw Error({.function = std::string(name)}, "the op has no gradient");
  detail::GradientRequest request;
  for (const std::string_view path : wrt) {
    const bool present = std::any_of(graph.inputs.begin(), graph.inputs.end(),
                                     [&](const dsl::InputInfo& input) { return input.name == path; });
    if (present) request.wrt.emplace_back(path);
  }
  std::vector<std::string> outputs;
  bool is_single_number = false;
  for (const std::string_view output : differentiated) {
    for (const dsl::OutputInfo& info : graph.outputs) {
      if (info.name != output) continue;
      outputs.emplace_back(output);
      is_single_number = info.axes.empty();
    }
  }
  const auto shared = std::make_shared<const dsl::Graph>(std::move(graph));
  const std::string function(name);
  return outputs.size() == 1 && is_single_number
             ? *detail::value_and_grad(shared, function + "/value_and_grad", request, outputs.front())
             : *detail::vjp(shared, function + "/vjp", request, outputs);
}

}  // namespace tigon::ops
