// The reference's results of a function at the arguments of a launch, with their bounds.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "dsl/reference/evaluate.hpp"
#include "tigon/tigon.hpp"

namespace language_model_test {

// The elements of a dense buffer of the host.
std::vector<double> numbers(const tigon::detail::RawBuffer& raw);

struct Given {
  std::map<std::string, tigon::detail::RawBuffer> tensors;  // by path
  std::map<std::string, double> scalars;
};
using Results = std::map<std::string, tigon::dsl::TensorValue>;  // by path: "value", "grad.weights.layers[0].up"
Results evaluated(const tigon::dsl::Graph& traced, const tigon::Extents& extents, const Given& given);

template <template <template <class> class> class Args, class R>
Results evaluated(const tigon::Function<Args, R>& function, const Args<tigon::Shape>& shape,
                  const tigon::Extents& extents, const Args<tigon::Buffer>& args) {
  Given given;
  const auto add = [&](const std::string& path, const auto& slot) {
    if constexpr (requires { slot.raw(); })
      given.tensors[path] = slot.raw();
    else
      given.scalars[path] = static_cast<double>(slot.value);
  };
  std::string root;
  tigon::detail::visit_slots(args, root, add);
  return evaluated(*function.trace(shape), extents, given);
}

}  // namespace language_model_test
