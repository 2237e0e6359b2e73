// Keeps host batches until the device has read them, and results on the device until the host asks for them.
#include "exchange.hpp"

#include <algorithm>
#include <stdexcept>

namespace language_model {
namespace {

// Further ahead gains nothing, and large batches are kept few.
std::int64_t batches_ahead(std::int64_t batch, std::int64_t context) {
  constexpr std::int64_t most = 32, most_bytes = std::int64_t{64} << 20;
  return std::clamp(most_bytes / (batch * context * std::int64_t{2 * sizeof(i32)}), std::int64_t{1}, most);
}

}  // namespace

Exchange::Exchange(std::int64_t batch, std::int64_t context, const tigon::Stream& stream)
    : stream_(stream),
      batch_(batch),
      context_(context),
      capacity_(batches_ahead(batch, context)),
      bytes_(tigon::allocate<i32(Batch, Time)>({batch, context}, stream.device())),
      target_(tigon::allocate<i32(Batch, Time)>({batch, context}, stream.device())),
      results_(tigon::allocate<f32(Places, Apart)>({2 * capacity_, 4}, stream.device())),
      host_results_(tigon::allocate<f32(Places, Apart)>({2 * capacity_, 4})) {
  std::fill_n(host_results_.data, 8 * capacity_, 0.0F);
  tigon::copy(stream_, results_, host_results_);
  stream_.synchronize();
}

Exchange::HostBatch& Exchange::next_batch() {
  if (full()) throw std::logic_error("collect before sending more batches");
  if (sent_ == host_batches_.size()) {
    host_batches_.push_back(
        {tigon::allocate<i32(Batch, Time)>({batch_, context_}), tigon::allocate<i32(Batch, Time)>({batch_, context_})});
  }
  return host_batches_[sent_++];
}

Buffer<f32()> Exchange::result() {
  if (asked_ == static_cast<std::size_t>(2 * capacity_)) throw std::logic_error("collect before asking for results");
  return {results_.data + 4 * asked_++, {}, stream_.device()};
}

std::vector<f32> Exchange::collect() {
  tigon::copy(stream_, host_results_, results_);
  stream_.synchronize();
  std::vector<f32> numbers;
  for (std::size_t i = 0; i < asked_; ++i) numbers.push_back(host_results_.data[4 * i]);
  sent_ = asked_ = 0;
  return numbers;
}

}  // namespace language_model
