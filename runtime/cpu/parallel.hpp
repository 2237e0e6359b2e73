// Runs numbered partitions of a kernel on the OpenMP pool that the matmul library also uses, without an OpenMP
// compiler.
#pragma once
#include "tigon/dtype.hpp"

namespace tigon::runtime {

// Handles partitions [first, last) as worker `worker`; worker numbers are below max_threads.
using PartitionBody = void (*)(void* context, i64 first, i64 last, int worker);

// What each worker does after its share: non-temporal stores are ordered by nothing else.
enum class ShareEnd { nothing, store_fence };

// Splits [0, partitions) into one contiguous share per worker. One worker or one partition runs on the calling thread
// with no fork; so do calls that follow one whose workers were slow to begin, because others use the cores. max_threads
// <= 0 stands for worker_limit(). An exception of the body is kept until every share has ended and is then thrown here,
// the lowest worker's first.
void parallel_partitions(i64 partitions, int max_threads, PartitionBody body, void* context,
                         ShareEnd end = ShareEnd::nothing);

// The threads a parallel call would use by default: OpenMP's limit for the calling thread, 1 where OpenMP is missing.
int worker_limit();

// Calls of this thread use all workers again, whatever was met before.
void forget_contention() noexcept;
// What each call reports of itself: seconds that its slowest worker took to begin, and that the longest share took.
void report_contention(double late, double worked) noexcept;

// A share below this is not worth waking a worker for: waking costs 0.6 us while the pool still spins and several
// microseconds once it sleeps (2 cores, libgomp 12).
inline constexpr double smallest_share_nanoseconds = 5000.0;

// How many of max_threads workers to use for this much work, so that none gets less than the smallest share.
int workers_for(double work_nanoseconds, int max_threads);

// Where workers come from. OpenMP's pool is the one to use; standard threads (started anew by each call) exist because
// race detectors do not see libgomp's synchronisation. TIGON_THREADS=standard chooses them from outside.
enum class ThreadSource { openmp, standard };
void set_thread_source(ThreadSource source) noexcept;
ThreadSource thread_source() noexcept;

// While it lives, OpenMP code called from this thread runs sequentially.
class SequentialOpenMP {
 public:
  SequentialOpenMP() noexcept;
  ~SequentialOpenMP();
  SequentialOpenMP(const SequentialOpenMP&) = delete;
  SequentialOpenMP& operator=(const SequentialOpenMP&) = delete;

 private:
  int previous_;
};

}  // namespace tigon::runtime
