// Shares cover every partition once, small work stays on the calling thread, and exceptions come out on it.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <stdexcept>
#include <thread>

#include "runtime/cpu/parallel.hpp"

namespace tigon::runtime::test {
namespace {

struct Record {
  std::vector<std::atomic<int>> visits;
  std::vector<std::atomic<i64>> first_of_worker;
  std::atomic<int> calls{0};
  std::atomic<bool> left_thread{false};
  std::thread::id caller = std::this_thread::get_id();

  Record(i64 partitions, int workers)
      : visits(static_cast<std::size_t>(partitions)), first_of_worker(static_cast<std::size_t>(workers)) {
    for (auto& first : first_of_worker) first = -1;
  }
};

void visit(void* context, i64 first, i64 last, int worker) {
  Record& record = *static_cast<Record*>(context);
  for (i64 i = first; i < last; ++i) ++record.visits[static_cast<std::size_t>(i)];
  record.first_of_worker[static_cast<std::size_t>(worker)] = first;
  ++record.calls;
  if (std::this_thread::get_id() != record.caller) record.left_thread = true;
}

// Both, unless standard threads were asked for (a race detector sees none of libgomp's synchronisation).
std::vector<ThreadSource> sources() {
  if (thread_source() == ThreadSource::standard) return {ThreadSource::standard};
  return {ThreadSource::openmp, ThreadSource::standard};
}

class Source {
 public:
  explicit Source(ThreadSource source) : previous_(thread_source()) { set_thread_source(source); }
  ~Source() { set_thread_source(previous_); }

 private:
  ThreadSource previous_;
};

}  // namespace

TEST_CASE("every partition runs once, in contiguous ascending shares", "[parallel]") {
  for (const ThreadSource kind : sources()) {
    const Source source(kind);
    for (const i64 partitions : {0, 1, 2, 3, 7, 64, 1000}) {
      for (const int workers : {1, 2, 3, 8}) {
        Record record(partitions, workers);
        forget_contention();
        parallel_partitions(partitions, workers, visit, &record,
                            partitions % 2 == 0 ? ShareEnd::store_fence : ShareEnd::nothing);
        for (const auto& count : record.visits) REQUIRE(count == 1);
        REQUIRE(record.calls <= std::min<i64>(partitions, workers));
        i64 previous = -1;
        for (const auto& first : record.first_of_worker) {
          if (first < 0) continue;
          REQUIRE(first > previous);
          previous = first;
        }
        if (workers == 1 || partitions <= 1) REQUIRE_FALSE(record.left_thread);
        if (workers > 1 && partitions > 1 && kind == ThreadSource::standard) REQUIRE(record.left_thread);
      }
    }
  }
}

TEST_CASE("the pool's workers really run", "[parallel]") {
  REQUIRE(worker_limit() >= 1);
  Record record(4, 4);
  forget_contention();
  parallel_partitions(4, 4, visit, &record);
  CHECK(record.left_thread);
  CHECK(record.calls == 4);
}

TEST_CASE("a nested call runs everything once", "[parallel]") {
  std::atomic<int> total{0};
  const auto inner = [](void* context, i64 first, i64 last, int) {
    *static_cast<std::atomic<int>*>(context) += static_cast<int>(last - first);
  };
  struct Context {
    std::atomic<int>* total;
    PartitionBody inner;
  } context{&total, inner};
  parallel_partitions(
      2, 2,
      [](void* data, i64 first, i64 last, int) {
        const Context& outer = *static_cast<Context*>(data);
        for (i64 i = first; i < last; ++i) parallel_partitions(10, 4, outer.inner, outer.total);
      },
      &context);
  CHECK(total == 20);
}

TEST_CASE("the lowest worker's exception arrives after all shares ended", "[parallel]") {
  for (const ThreadSource kind : sources()) {
    const Source source(kind);
    for (const int workers : {1, 2, 4}) {
      std::atomic<int> ended{0};
      forget_contention();
      const auto body = [](void* context, i64 first, i64, int worker) {
        ++*static_cast<std::atomic<int>*>(context);
        if (worker != 1) throw std::runtime_error("share " + std::to_string(first));
      };
      REQUIRE_THROWS_WITH(parallel_partitions(4, workers, body, &ended), "share 0");
      REQUIRE(ended == workers);
    }
  }
}

TEST_CASE("after a worker that was slow to begin, regions run on their caller alone, and later share again",
          "[parallel]") {
  forget_contention();
  const auto shares = [] {
    std::atomic<int> calls{0};
    parallel_partitions(2, 2, [](void* data, i64, i64, int) { ++*static_cast<std::atomic<int>*>(data); }, &calls);
    return calls.load();
  };
  report_contention(0.02, 0.0);
  int alone = 0;
  while (alone < 100 && shares() == 1) ++alone;
  CHECK(alone == 32);
  forget_contention();
  report_contention(0.02, 0.0);
  report_contention(0.02, 0.0);
  alone = 0;
  while (alone < 1000 && shares() == 1) ++alone;
  CHECK(alone == 64);
  forget_contention();
}

TEST_CASE("small work is not shared", "[parallel]") {
  CHECK(workers_for(0, 8) == 1);
  CHECK(workers_for(9999, 8) == 1);
  CHECK(workers_for(10001, 8) == 2);
  CHECK(workers_for(1e9, 8) == 8);
  CHECK(workers_for(1e9, 1) == 1);
  CHECK(workers_for(std::numeric_limits<double>::quiet_NaN(), 8) == 1);
}

TEST_CASE("OpenMP is sequential inside its guard and as before after it", "[parallel]") {
  const int before = worker_limit();
  {
    const SequentialOpenMP sequential;
    CHECK(worker_limit() == 1);
  }
  CHECK(worker_limit() == before);
}

TEST_CASE("a child of fork runs its partitions after its parent has run some", "[parallel]") {
  const auto sum_of = [](i64 partitions) {
    std::atomic<i64> total{0};
    parallel_partitions(
        partitions, 2,
        [](void* context, i64 first, i64 last, int) {
          for (i64 i = first; i < last; ++i) *static_cast<std::atomic<i64>*>(context) += i;
        },
        &total);
    return total.load();
  };
  REQUIRE(sum_of(100) == 4950);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::alarm(20);  // ends a child that hangs
    ::_exit(sum_of(100) == 4950 ? 0 : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace tigon::runtime::test
