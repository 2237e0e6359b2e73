// Cross entropy's options and results, which two ops have.
#pragma once
#include "ops/entry_support.hpp"
#include "tigon/ops/cross_entropy.hpp"

namespace tigon::ops {

inline constexpr std::string_view reduction_values[] = {"mean", "sum", "none"};
inline constexpr std::string_view smoothing_values[] = {"0", "0.1"};
inline constexpr std::string_view z_loss_values[] = {"0", "0.01"};
inline constexpr std::string_view softcap_values[] = {"0", "5"};
inline constexpr std::string_view ignore_values[] = {"-100", "0"};
inline constexpr std::string_view outputs_values[] = {"loss", "all"};
inline constexpr OptionSpec cross_entropy_option_list[] = {
    {"reduction", reduction_values, no_number, "of the tokens' losses"},
    {"smoothing", smoothing_values, CrossEntropyOptions::smoothing_range, "label smoothing"},
    {"z_loss", z_loss_values, CrossEntropyOptions::z_loss_range, "weight of logsumexp^2"},
    {"softcap", softcap_values, CrossEntropyOptions::softcap_range, "c tanh(x / c); 0: none"},
    {"ignore_index", ignore_values, any_whole, "the target of tokens that do not count"},
    {"class_weight", absent_present, no_number, "a weight for each class"},
    {"token_scaling", off_on, no_number, "weighs a token by its own probability"},
    {"outputs", outputs_values, no_number, "the loss alone, or all that is known of each token"},
};
inline constexpr int cross_entropy_option_count = static_cast<int>(std::size(cross_entropy_option_list));
inline constexpr std::string_view loss_outputs[] = {"loss", "log_probability", "entropy"};

inline CrossEntropyOptions cross_entropy_options(const Settings& settings) {
  return {.ignore_index = static_cast<std::int64_t>(settings.number("ignore_index")),
          .label_smoothing = settings.number("smoothing"),
          .z_loss = settings.number("z_loss"),
          .softcap = settings.number("softcap"),
          .token_scaling = settings.is("token_scaling", "on")};
}

// `Loss` is f32() or, unreduced, f32(Tokens).
template <class Loss>
struct LossOf {
  template <template <class> class Slot>
  struct Out {
    TIGON_OUT(Out, (Slot<Loss>, loss), (Slot<maybe<Loss>>, z_loss), (Slot<maybe<f32(Tokens)>>, log_probability),
              (Slot<maybe<f32(Tokens)>>, entropy), (Slot<maybe<i64(Tokens)>>, predicted),
              (Slot<maybe<f32()>>, accuracy));
  };
};

template <LossReduction reduction, class Terms>
auto loss_results(const Terms& terms, bool all) {
  using Loss = std::conditional_t<reduction == LossReduction::none, f32(Tokens), f32()>;
  typename LossOf<Loss>::template Out<Tensor> out;
  out.loss = terms.template loss<reduction>();
  if (all) {
    out.z_loss = Tensor<Loss>(stop_gradient(terms.template z_loss<reduction>()));
    out.log_probability = Tensor<f32(Tokens)>(terms.log_probability());
    out.entropy = Tensor<f32(Tokens)>(terms.entropy());
    out.predicted = Tensor<i64(Tokens)>(terms.predicted());
    out.accuracy = Tensor<f32()>(terms.accuracy());
  }
  return out;
}

// make.operator()<reduction>(): mean and sum are told apart by type too, which is what their graphs need.
template <class Make>
dsl::Graph for_reduction(const Settings& settings, Make make) {
  if (settings.is("reduction", "none")) return make.template operator()<LossReduction::none>();
  if (settings.is("reduction", "sum")) return make.template operator()<LossReduction::sum>();
  return make.template operator()<LossReduction::mean>();
}

}  // namespace tigon::ops
