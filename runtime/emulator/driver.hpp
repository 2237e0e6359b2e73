// The state behind the emulated driver's functions: streams with their work, events, libraries, graphs.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "runtime/emulator/device_table.hpp"
#include "runtime/emulator/driver_types.hpp"
#include "runtime/emulator/emulator.hpp"
#include "runtime/emulator/module.hpp"

namespace tigon::emulator::driver {

// One piece of a stream's work. `wait` names an event that has to have happened first.
struct Work {
  std::function<void()> run;
  Event* wait = nullptr;
  std::uint64_t wait_ticket = 0;
};

struct Stream {
  std::deque<Work> work;
  Graph* capture = nullptr;
  bool capture_origin = false;  // the stream that the capture began on
  bool blocking = true;         // waits for the null stream, and it for this one
};

struct Event {
  std::uint64_t recorded = 0;  // tickets of the last record, and of the last that has happened
  std::uint64_t happened = 0;
  Stream* stream = nullptr;  // on which it was recorded
  Graph* capture = nullptr;  // it was recorded while this graph was captured
  double seconds = 0;        // when it happened, on a clock that launches move
};

struct Kernel {
  const Program* program = nullptr;
  Library* library = nullptr;
  int dynamic_shared_limit = 48 * 1024;
  bool large_clusters = false;
};

struct Library {
  std::unique_ptr<LoadedModule> module;
  std::map<std::string, std::unique_ptr<Kernel>, std::less<>> kernels;
};

struct Graph {
  std::vector<std::function<void()>> nodes;
  Stream* origin = nullptr;
};
struct GraphExec {
  std::vector<std::function<void()>> nodes;
};

struct Context {
  int references = 0;
};

class Driver {
 public:
  static Driver& instance();

  std::recursive_mutex mutex;
  bool unknown_device = false;  // the environment asks for a device that the table lacks
  Options options;
  const DeviceFacts* facts = nullptr;
  std::unique_ptr<Machine> machine;
  bool initialized = false;
  Context primary;
  Context* current = nullptr;
  Stream null_stream;
  std::set<Stream*> streams;
  std::set<Event*> events;
  std::set<Library*> libraries;
  std::set<const Kernel*> kernels;  // of the libraries that are loaded
  std::set<Graph*> graphs;
  std::set<GraphExec*> graph_execs;
  std::map<void*, std::unique_ptr<std::uint8_t[]>> pinned;
  std::uint64_t tickets = 0;
  double clock_seconds = 0;
  Result pending = success;  // of a kernel that failed earlier
  std::string error;

  void reset(const Options& wanted);
  Result fail(Result result, std::string sentence);
  // The error of work that failed earlier, if any.
  Result status() const { return pending; }

  [[nodiscard]] bool known(Stream* stream) const;
  Stream& resolve(Stream* stream) { return usable_null(stream) ? null_stream : *stream; }
  // Adds work to a stream, to be captured, run at once, or kept until the host waits.
  Result enqueue(Stream* stream, std::function<void()> run);
  Result wait_for_event(Stream* stream, Event* event);
  void drain(Stream& stream);
  void drain_blocking();
  void drain_all();
  void finish_event(Event& event);
  [[nodiscard]] bool capturing() const;

  Result check_launch(const Kernel& kernel, const LaunchShape& shape);
  Result launch(Kernel* kernel, const LaunchShape& shape, Stream* stream, void** parameters, void** extra);
  void run_now(const Program& program, const LaunchShape& shape, const std::vector<std::uint8_t>& parameters);

 private:
  // The null stream, and the two handles of the legacy and the per-thread default stream.
  static bool usable_null(const Stream* stream) {
    return stream == nullptr || reinterpret_cast<std::uintptr_t>(stream) <= 2;
  }
  void run_front(Stream& stream);
  std::vector<Stream*> order_;  // streams in the order of their making, for turns that do not depend on addresses
  std::unique_ptr<Random> turns_;

 public:
  Stream* make_stream(bool blocking);
  void destroy_stream(Stream* stream);
};

// The functions of one subject, for the table.
struct EntryPoint {
  const char* name;
  void* function;
};
std::vector<EntryPoint> device_entry_points();
std::vector<EntryPoint> memory_entry_points();
std::vector<EntryPoint> stream_entry_points();
std::vector<EntryPoint> library_entry_points();
std::vector<EntryPoint> blas_entry_points();

const char* result_name(Result result);
const char* result_text(Result result);

// Runs the body of a function of the driver: one at a time, initialized, and without exceptions getting out.
template <class Body>
Result guarded(Body&& body) {
  auto& driver = Driver::instance();
  const std::lock_guard lock(driver.mutex);
  if (!driver.initialized) return driver.fail(not_initialized, "cuInit was not called");
  try {
    return body(driver);
  } catch (const std::bad_alloc&) {
    return driver.fail(out_of_memory, "the host has no memory left for the emulated device");
  } catch (const std::exception& error) {
    return driver.fail(unknown, error.what());
  }
}

template <class Function>
void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace tigon::emulator::driver
