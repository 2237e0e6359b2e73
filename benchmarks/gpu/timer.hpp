// Times work on a stream by events, each run behind a write that empties the second-level cache.
#pragma once
#include <functional>

#include "runtime/cuda/driver.hpp"
#include "tigon/buffer.hpp"

namespace tigon::benchmarks {

class GpuTimer {
 public:
  explicit GpuTimer(const Stream& stream);
  ~GpuTimer();
  GpuTimer(const GpuTimer&) = delete;
  GpuTimer& operator=(const GpuTimer&) = delete;

  // The median of `runs` after one that is not counted, in microseconds.
  double median_of(int runs, const std::function<void()>& enqueue) const;

 private:
  Stream stream_;
  Storage evicting_;
  runtime::cuda_c::Event begin_ = nullptr, end_ = nullptr;
};

}  // namespace tigon::benchmarks
