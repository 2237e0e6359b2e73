// As many threads as there are cores take one kernel after the other.
#include "runtime/build_kernels.hpp"

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "runtime/cpu_features.hpp"

namespace tigon::runtime {

void build_kernels(const plan::Plan& plan, const Progress& progress, const std::function<void(std::uint32_t)>& make) {
  const std::size_t count = plan.kernels.size();
  std::vector<std::exception_ptr> failures(count);
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::size_t done = 0;  // guarded by the mutex
  const auto work = [&] {
    for (std::size_t i = next.fetch_add(1); i < count && !failed; i = next.fetch_add(1)) {
      try {
        make(static_cast<std::uint32_t>(i));
        if (!progress) continue;
        const std::lock_guard lock(mutex);
        progress({.done = ++done, .total = count, .kernel = plan.kernels[i].name});
      } catch (...) {
        failures[i] = std::current_exception();
        failed = true;
      }
    }
  };
  const std::size_t workers = std::min<std::size_t>(static_cast<std::size_t>(std::max(1, machine().cores)), count);
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < workers; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace tigon::runtime
