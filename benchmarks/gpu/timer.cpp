// Events around each run; the cache is filled with other lines before it.
#include "timer.hpp"

#include <algorithm>

namespace tigon::benchmarks {
namespace {

constexpr std::size_t evicting_bytes = std::size_t{256} << 20;  // twice the largest cache known

}  // namespace

GpuTimer::GpuTimer(const Stream& stream) : stream_(stream), evicting_(evicting_bytes, stream.device()) {
  const runtime::CudaDriver& driver = runtime::CudaDriver::get();
  const runtime::CurrentContext context(driver.device(stream.device().ordinal()));
  driver.check(driver.api().event_create(&begin_, 0), "cuEventCreate");
  driver.check(driver.api().event_create(&end_, 0), "cuEventCreate");
}

GpuTimer::~GpuTimer() {
  const runtime::cuda_c::Api& api = runtime::CudaDriver::get().api();
  api.event_destroy(begin_);
  api.event_destroy(end_);
}

double GpuTimer::median_of(int runs, const std::function<void()>& enqueue) const {
  const runtime::CudaDriver& driver = runtime::CudaDriver::get();
  const runtime::cuda_c::Api& api = driver.api();
  const runtime::CurrentContext context(driver.device(stream_.device().ordinal()));
  const auto native = static_cast<runtime::cuda_c::Stream>(stream_.native());
  std::vector<double> times;
  for (int run = 0; run <= runs; ++run) {
    driver.check(api.fill_8_async(reinterpret_cast<runtime::cuda_c::Pointer>(evicting_.data()),
                                  static_cast<unsigned char>(run), evicting_.bytes(), native),
                 "cuMemsetD8Async");
    driver.check(api.event_record(begin_, native), "cuEventRecord");
    enqueue();
    driver.check(api.event_record(end_, native), "cuEventRecord");
    driver.check(api.event_synchronize(end_), "cuEventSynchronize");
    float milliseconds = 0;
    driver.check(api.event_elapsed(&milliseconds, begin_, end_), "cuEventElapsedTime");
    if (run > 0) times.push_back(1000.0 * static_cast<double>(milliseconds));
  }
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace tigon::benchmarks
