// Between host and device while a loop runs ahead: batches go there, single numbers come back, many at a time.
#pragma once
#include <vector>

#include "model.hpp"

namespace language_model {

class Exchange {
 public:
  // For batches of this many windows. The stream is waited for in collect, and nowhere else.
  Exchange(std::int64_t batch, std::int64_t context, const tigon::Stream& stream);

  // The batch on the device.
  [[nodiscard]] const Buffer<i32(Batch, Time)>& bytes() const { return bytes_; }
  [[nodiscard]] const Buffer<i32(Batch, Time)>& target() const { return target_; }
  // cut(bytes, target) writes a batch on the host; the device has it when it is done with what it was given before.
  template <class Cut>
  void send(const Cut& cut) {
    HostBatch& host = next_batch();
    cut(host.bytes.data, host.target.data);
    tigon::copy(stream_, bytes_, host.bytes);
    tigon::copy(stream_, target_, host.target);
  }
  // Where a function may write the next number; two for each batch.
  Buffer<f32()> result();
  // How many batches can be sent between two collections, and whether they have been.
  [[nodiscard]] std::int64_t capacity() const { return capacity_; }
  [[nodiscard]] bool full() const { return sent_ == static_cast<std::size_t>(capacity_); }
  // Waits for the device. The numbers since the last time, in order.
  std::vector<f32> collect();

 private:
  struct Places : tigon::axis<"places"> {};
  struct Apart : tigon::axis<"apart", 4> {};  // kernels are compiled for buffers that start at 16 bytes
  struct HostBatch {
    tigon::Owned<i32(Batch, Time)> bytes, target;
  };
  HostBatch& next_batch();

  tigon::Stream stream_;
  std::int64_t batch_, context_, capacity_;
  tigon::Owned<i32(Batch, Time)> bytes_, target_;
  std::vector<HostBatch> host_batches_;  // what the device has not read yet must stay as it is
  tigon::Owned<f32(Places, Apart)> results_, host_results_;
  std::size_t sent_ = 0, asked_ = 0;
};

}  // namespace language_model
