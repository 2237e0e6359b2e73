// Draws the first weights on the host, and brings them to the device.
#include "memory.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "options.hpp"

namespace language_model {
namespace {

// Embedding and head, and for each layer four square matrices and three of the perceptron.
const ModelSize& checked(const ModelSize& size, tigon::Device device) {
  const auto hidden = static_cast<double>(size.hidden), inner = static_cast<double>(size.inner);
  const double layer = 4 * hidden * hidden + 3 * hidden * inner + 2 * hidden;
  const double bytes =
      sizeof(f32) * (2 * static_cast<double>(size.vocab) * hidden + static_cast<double>(size.layers) * layer);
  if (device == tigon::Device::cpu())
    require_memory(4 * bytes, "weights, gradients and running means");
  else
    require_memory(bytes, "weights");  // they are drawn here
  return size;
}

}  // namespace

void require_memory(double bytes, const std::string& what) {
  constexpr double gibibyte = 1 << 30;
  const double has = static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (bytes <= 0.8 * has) return;
  throw UsageError(
      fmt::format("{} need {:.1f} GiB, and this machine has {:.1f}; ask for less with --hidden, --layers, "
                  "--batch, --context or --budget",
                  what, bytes / gibibyte, has / gibibyte));
}

State::State(const ModelSize& size, Random& random, const tigon::Stream& stream)
    : weights(allocate_weights(checked(size, stream.device()), stream.device())),
      first(allocate_weights(size, stream.device())),
      second(allocate_weights(size, stream.device())) {
  {
    const Weights<tigon::Owned> host = allocate_weights(size);
    copy_weights(stream, first, host);
    copy_weights(stream, second, host);
    stream.synchronize();  // before what is copied changes
    draw_weights(host, random);
    copy_weights(stream, weights, host);
    stream.synchronize();
  }
  gradients = allocate_weights(size, stream.device());  // after the host's are gone: no more memory than four of them
}

}  // namespace language_model
