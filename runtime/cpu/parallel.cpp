// The one place that knows libgomp: finds the library that is already in the process and forks through its entry point.
#include "runtime/cpu/parallel.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tigon::runtime {
namespace {

// The five entry points of libgomp in use; all null where the library is missing.
struct OpenMP {
  void (*parallel)(void (*body)(void*), void* data, unsigned threads, unsigned flags) = nullptr;
  int (*thread_number)() = nullptr;
  int (*team_size)() = nullptr;
  int (*max_threads)() = nullptr;
  void (*set_threads)(int) = nullptr;
};

template <class Pointer>
bool find(void* library, const char* symbol, Pointer& pointer) {
  pointer = reinterpret_cast<Pointer>(dlsym(library, symbol));
  return pointer != nullptr;
}

OpenMP load_openmp() {
  OpenMP entries;
  void* library = dlopen("libgomp.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {};
  const bool complete = find(library, "GOMP_parallel", entries.parallel) &&
                        find(library, "omp_get_thread_num", entries.thread_number) &&
                        find(library, "omp_get_num_threads", entries.team_size) &&
                        find(library, "omp_get_max_threads", entries.max_threads) &&
                        find(library, "omp_set_num_threads", entries.set_threads);
  // libgomp's threads are gone in a child of fork, and it would wait for them.
  ::pthread_atfork(nullptr, nullptr, [] { set_thread_source(ThreadSource::standard); });
  return complete ? entries : OpenMP{};
}

const OpenMP& openmp() {
  static const OpenMP entries = load_openmp();
  return entries;
}

#if defined(__SANITIZE_THREAD__)
constexpr bool race_detector = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr bool race_detector = true;
#else
constexpr bool race_detector = false;
#endif
#else
constexpr bool race_detector = false;
#endif

ThreadSource initial_source() noexcept {
  const char* wish = std::getenv("TIGON_THREADS");
  if (wish != nullptr && std::string_view(wish) == "standard") return ThreadSource::standard;
  if (wish != nullptr && std::string_view(wish) == "openmp") return ThreadSource::openmp;
  return race_detector ? ThreadSource::standard : ThreadSource::openmp;
}

std::atomic<ThreadSource>& source_setting() noexcept {
  static std::atomic<ThreadSource> setting{initial_source()};
  return setting;
}

void store_fence() noexcept {
#if defined(__x86_64__)
  _mm_sfence();
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

double seconds_now() noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Where other programs want the cores, a region waits for a worker that does not run, for a whole turn of the system's
// scheduler, and that for each of many small regions. After such a wait this thread's regions run on itself alone for a
// while, twice as long each time it happens again. Results do not depend on the number of workers.
class Contention {
 public:
  [[nodiscard]] bool alone() noexcept {
    if (skip_ == 0) return false;
    --skip_;
    return true;
  }
  // The longest time that a worker took to begin, and the longest that one worked.
  void met(double late, double worked) noexcept {
    constexpr double long_wait = 1e-3;  // seconds; waking a worker takes a tenth of that
    if (late < long_wait || late < 2 * worked) {
      length_ = std::max(shortest, length_ / 2);
      return;
    }
    skip_ = length_;
    length_ = std::min(longest, length_ * 2);
  }

 private:
  static constexpr int shortest = 32, longest = 4096;  // regions
  int skip_ = 0, length_ = shortest;
};
thread_local Contention contention;

void raise(std::atomic<double>& most, double value) noexcept {
  double known = most.load(std::memory_order_relaxed);
  while (known < value && !most.compare_exchange_weak(known, value, std::memory_order_relaxed)) {
  }
}

struct Region {
  i64 partitions;
  PartitionBody body;
  void* context;
  ShareEnd end;
  std::atomic<int> failed_worker;  // the lowest worker whose body threw
  std::atomic<bool> recording{false};
  std::exception_ptr failure{};
  double start = 0;  // seconds
  std::atomic<double> late{0}, worked{0};

  // Exceptions must not cross frames of the thread library.
  void run_share(int worker, int workers) noexcept {
    const double begun = seconds_now();
    raise(late, begun - start);
    const i64 whole = partitions / workers;
    const i64 rest = partitions % workers;
    const i64 first = whole * worker + std::min<i64>(worker, rest);
    const i64 last = first + whole + (worker < rest ? 1 : 0);
    if (first < last) {
      try {
        body(context, first, last, worker);
      } catch (...) {
        record(worker);
      }
    }
    if (end == ShareEnd::store_fence) store_fence();
    raise(worked, seconds_now() - begun);
  }

  void record(int worker) noexcept {
    while (recording.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
    if (worker < failed_worker.load(std::memory_order_relaxed)) {
      failed_worker.store(worker, std::memory_order_relaxed);
      failure = std::current_exception();
    }
    recording.store(false, std::memory_order_release);
  }
};

// The team may be smaller than asked for (nested regions, thread limits), so its size is read inside.
void openmp_share(void* data) {
  const OpenMP& library = openmp();
  static_cast<Region*>(data)->run_share(library.thread_number(), library.team_size());
}

void run_on_standard_threads(Region& region, int workers) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(workers - 1));
  for (int worker = 1; worker < workers; ++worker) {
    threads.emplace_back([&region, worker, workers] { region.run_share(worker, workers); });
  }
  region.run_share(0, workers);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

void parallel_partitions(i64 partitions, int max_threads, PartitionBody body, void* context, ShareEnd end) {
  if (partitions <= 0) return;
  const i64 limit = max_threads > 0 ? max_threads : worker_limit();
  const int workers = static_cast<int>(std::min(limit, partitions));
  const bool standard = thread_source() == ThreadSource::standard;
  if (workers <= 1 || (!standard && openmp().parallel == nullptr) || contention.alone()) {
    body(context, 0, partitions, 0);
    if (end == ShareEnd::store_fence) store_fence();
    return;
  }
  Region region{partitions, body, context, end, {workers}};
  region.start = seconds_now();
  if (standard) {
    run_on_standard_threads(region, workers);
  } else {
    openmp().parallel(openmp_share, &region, static_cast<unsigned>(workers), 0);
  }
  contention.met(region.late.load(std::memory_order_relaxed), region.worked.load(std::memory_order_relaxed));
  if (region.failure) std::rethrow_exception(region.failure);
}

void forget_contention() noexcept { contention = {}; }
void report_contention(double late, double worked) noexcept { contention.met(late, worked); }

int worker_limit() { return openmp().max_threads != nullptr ? std::max(1, openmp().max_threads()) : 1; }

int workers_for(double work_nanoseconds, int max_threads) {
  const int limit = max_threads > 0 ? max_threads : worker_limit();
  const double shares = work_nanoseconds / smallest_share_nanoseconds;
  if (!(shares >= 2.0)) return 1;
  return shares >= limit ? limit : static_cast<int>(shares);
}

void set_thread_source(ThreadSource source) noexcept { source_setting().store(source, std::memory_order_relaxed); }

ThreadSource thread_source() noexcept { return source_setting().load(std::memory_order_relaxed); }

SequentialOpenMP::SequentialOpenMP() noexcept : previous_(worker_limit()) {
  if (previous_ != 1) openmp().set_threads(1);
}

SequentialOpenMP::~SequentialOpenMP() {
  if (previous_ != 1) openmp().set_threads(previous_);
}

}  // namespace tigon::runtime
