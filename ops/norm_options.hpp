// RMSNorm's options, which two ops have.
#pragma once
#include "ops/entry_support.hpp"
#include "tigon/ops/rms_norm.hpp"

namespace tigon::ops {

inline constexpr std::string_view casting_values[] = {"llama", "gemma", "none"};
inline constexpr std::string_view offset_values[] = {"0", "1"};
inline constexpr std::string_view epsilon_values[] = {"1e-6", "1e-2"};
inline constexpr OptionSpec rms_norm_option_list[] = {
    {"casting", casting_values, no_number, "where a 16-bit norm rounds"},
    {"offset", offset_values, RmsNormOptions::offset_range, "added to the weight"},
    {"epsilon", epsilon_values, RmsNormOptions::epsilon_range, "added to the mean of squares"},
};

inline RmsNormOptions rms_norm_options(const Settings& settings) {
  RmsNormOptions options;
  options.offset = settings.number("offset");
  options.epsilon = settings.number("epsilon");
  if (settings.is("casting", "gemma")) options.casting = Casting::gemma;
  if (settings.is("casting", "none")) options.casting = Casting::none;
  return options;
}

}  // namespace tigon::ops
