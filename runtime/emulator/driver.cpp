// The state behind the emulated driver's functions: streams with their work, events, libraries, graphs.
#include "runtime/emulator/driver.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace tigon::emulator::driver {

Driver& Driver::instance() {
  // Never destroyed: handles may be used by destructors of static objects.
  static auto* driver = [] {
    auto* made = new Driver;
    Options wanted;
    const char* device = std::getenv("TIGON_EMULATED_GPU");
    if (device != nullptr && *device != '\0') {
      wanted.device = device;
      made->unknown_device = find_device(wanted.device) == nullptr;
    }
    made->reset(made->unknown_device ? Options{} : wanted);
    return made;
  }();
  return *driver;
}

void Driver::reset(const Options& wanted) {
  const auto* device = find_device(wanted.device);
  if (device == nullptr) {
    std::string known_devices;
    for (const auto& row : device_table())
      known_devices += fmt::format("{}{}", known_devices.empty() ? "" : ", ", row.key);
    throw std::invalid_argument(
        fmt::format("the emulated device '{}' is not known; there are {}", wanted.device, known_devices));
  }
  for (auto* library : libraries) delete library;
  for (auto* stream : streams) delete stream;
  for (auto* event : events) delete event;
  for (auto* graph : graphs) delete graph;
  for (auto* exec : graph_execs) delete exec;
  libraries.clear();
  kernels.clear();
  streams.clear();
  events.clear();
  graphs.clear();
  graph_execs.clear();
  pinned.clear();
  order_.clear();
  null_stream = {};
  options = wanted;
  facts = device;
  machine = std::make_unique<Machine>();
  machine->schedule = wanted.schedule;
  machine->sm_count = static_cast<std::uint32_t>(device->multiprocessors);
  turns_ = std::make_unique<Random>(wanted.schedule.seed);
  primary = {};
  current = nullptr;
  pending = success;
  error.clear();
  initialized = false;
}

Result Driver::fail(Result result, std::string sentence) {
  error = std::move(sentence);
  return result;
}

bool Driver::known(Stream* stream) const { return usable_null(stream) || streams.count(stream) != 0; }

Stream* Driver::make_stream(bool blocking) {
  auto* stream = new Stream;
  stream->blocking = blocking;
  streams.insert(stream);
  order_.push_back(stream);
  return stream;
}

void Driver::destroy_stream(Stream* stream) {
  drain(*stream);
  streams.erase(stream);
  std::erase(order_, stream);
  delete stream;
}

bool Driver::capturing() const {
  return std::any_of(order_.begin(), order_.end(), [](const Stream* stream) { return stream->capture != nullptr; });
}

Result Driver::enqueue(Stream* stream, std::function<void()> run) {
  if (!known(stream)) return fail(invalid_handle, "the stream does not exist");
  auto& to = resolve(stream);
  if (to.capture != nullptr) {
    to.capture->nodes.push_back(std::move(run));
    return success;
  }
  if (pending != success) return pending;
  if (&to == &null_stream) {
    if (capturing() && std::any_of(order_.begin(), order_.end(),
                                   [](const Stream* s) { return s->capture != nullptr && s->blocking; })) {
      return fail(stream_capture_implicit, "the null stream waits for a stream that is being captured");
    }
    drain_blocking();
    run();
    return pending;
  }
  if (!options.delay_streams) {
    run();
    return success;
  }
  to.work.push_back({std::move(run)});
  return success;
}

Result Driver::wait_for_event(Stream* stream, Event* event) {
  if (!known(stream) || events.count(event) == 0) return fail(invalid_handle, "the stream or event does not exist");
  auto& to = resolve(stream);
  if (event->capture != nullptr) {
    // A stream that waits for captured work joins the capture.
    if (to.capture == nullptr) to.capture = event->capture;
    return success;
  }
  if (to.capture != nullptr) return success;  // work from before the capture is no part of the graph
  if (event->recorded <= event->happened || !options.delay_streams) return success;
  if (&to == &null_stream) {
    drain(*event->stream);
    return success;
  }
  to.work.push_back({nullptr, event, event->recorded});
  return success;
}

void Driver::run_front(Stream& stream) {
  auto work = std::move(stream.work.front());
  stream.work.pop_front();
  if (work.wait != nullptr && events.count(work.wait) != 0) {
    // Streams whose event is waited for run until it has happened.
    while (work.wait->happened < work.wait_ticket && work.wait->stream != nullptr && !work.wait->stream->work.empty()) {
      run_front(*work.wait->stream);
    }
  }
  if (work.run) work.run();
}

void Driver::drain(Stream& stream) {
  while (!stream.work.empty()) {
    // Another stream may or may not get ahead: nothing orders it.
    if (turns_->below(2) == 0 && !order_.empty()) {
      auto& other = *order_[turns_->below(order_.size())];
      if (&other != &stream && !other.work.empty()) {
        run_front(other);
        continue;
      }
    }
    run_front(stream);
  }
}

void Driver::drain_blocking() {
  for (auto* stream : order_) {
    if (stream->blocking) drain(*stream);
  }
}

void Driver::drain_all() {
  for (auto* stream : order_) drain(*stream);
}

void Driver::finish_event(Event& event) {
  if (event.recorded > event.happened && event.stream != nullptr) {
    while (event.happened < event.recorded && !event.stream->work.empty()) run_front(*event.stream);
  }
}

Result Driver::check_launch(const Kernel& kernel, const LaunchShape& shape) {
  const auto& program = *kernel.program;
  const auto threads = shape.block.count();
  const auto blocks = shape.grid.count();
  if (blocks == 0 || threads == 0) return fail(invalid_value, "a grid or a block of no extent");
  if (shape.grid.x > 0x7fffffffU || shape.grid.y > 65535 || shape.grid.z > 65535) {
    return fail(invalid_value, fmt::format("a grid of {} x {} x {}", shape.grid.x, shape.grid.y, shape.grid.z));
  }
  if (shape.block.z > 64 || threads > 1024 || threads > program.max_threads) {
    return fail(invalid_value, fmt::format("{} threads in a block of {}, which allows {}", threads, program.name,
                                           std::min(program.max_threads, 1024U)));
  }
  if (shape.dynamic_shared > static_cast<std::uint64_t>(kernel.dynamic_shared_limit)) {
    return fail(invalid_value, fmt::format("{} bytes of dynamic shared memory for {}, whose limit is {}",
                                           shape.dynamic_shared, program.name, kernel.dynamic_shared_limit));
  }
  if (shape.dynamic_shared + program.declared_shared > static_cast<std::uint64_t>(facts->shared_per_block)) {
    return fail(launch_out_of_resources, fmt::format("{} bytes of shared memory for {}",
                                                     shape.dynamic_shared + program.declared_shared, program.name));
  }
  const auto cluster = shape.cluster.count();
  if (cluster > 1 && facts->major < 9) return fail(invalid_cluster_size, "the device has no clusters");
  if (cluster == 0 || shape.grid.x % shape.cluster.x != 0 || shape.grid.y % shape.cluster.y != 0 ||
      shape.grid.z % shape.cluster.z != 0 || cluster > (kernel.large_clusters ? 16U : 8U)) {
    return fail(invalid_cluster_size,
                fmt::format("a cluster of {} x {} x {} in a grid of {} x {} x {}", shape.cluster.x, shape.cluster.y,
                            shape.cluster.z, shape.grid.x, shape.grid.y, shape.grid.z));
  }
  return success;
}

void Driver::run_now(const Program& program, const LaunchShape& shape, const std::vector<std::uint8_t>& parameters) {
  if (pending != success) return;
  Fault fault{};
  const auto before = machine->counters.warp_instructions;
  const bool clean = run_kernel(*machine, program, shape, parameters, fault);
  // A clock that only has to move: one warp instruction per SM and cycle.
  clock_seconds += 2e-6 + static_cast<double>(machine->counters.warp_instructions - before) / facts->multiprocessors /
                              (1e3 * facts->clock_khz);
  if (clean || !options.faults_are_errors) return;
  switch (fault) {
    case Fault::out_of_bounds:
    case Fault::freed:
    case Fault::read_only:
      pending = illegal_address;
      break;
    case Fault::misaligned:
      pending = misaligned_address;
      break;
    default:
      pending = launch_failed;
  }
  const auto all = machine->reports.all();
  error = all.empty() ? std::string() : all.back().text();
}

Result Driver::launch(Kernel* kernel, const LaunchShape& shape, Stream* stream, void** parameters, void** extra) {
  if (kernels.count(kernel) == 0) return fail(invalid_handle, "the kernel does not exist");
  if (const auto result = check_launch(*kernel, shape); result != success) return result;
  const auto& program = *kernel->program;
  std::vector<std::uint8_t> bytes(program.parameter_bytes);
  if (parameters != nullptr) {
    bytes = gather_parameters(program, parameters);
  } else if (extra != nullptr) {
    // CU_LAUNCH_PARAM_BUFFER_POINTER (1), its size (2), end (0).
    const void* buffer = nullptr;
    std::size_t size = 0;
    for (auto** at = extra; *at != nullptr; at += 2) {
      if (reinterpret_cast<std::uintptr_t>(at[0]) == 1) buffer = at[1];
      if (reinterpret_cast<std::uintptr_t>(at[0]) == 2) size = *static_cast<const std::size_t*>(at[1]);
    }
    if (buffer == nullptr || size > bytes.size()) return fail(invalid_value, "a wrong parameter buffer");
    std::copy_n(static_cast<const std::uint8_t*>(buffer), size, bytes.begin());
  } else if (!bytes.empty()) {
    return fail(invalid_value, "a launch without its arguments");
  }
  return enqueue(stream, [this, kernel, shape, bytes] {
    // A graph may outlive the library of its kernels.
    if (kernels.count(kernel) != 0) run_now(*kernel->program, shape, bytes);
  });
}

}  // namespace tigon::emulator::driver
