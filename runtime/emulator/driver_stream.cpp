// The emulated driver's functions about streams, events, and graphs captured from streams.
#include "runtime/emulator/driver.hpp"

namespace tigon::emulator::driver {

namespace {

Result create_stream(Stream** stream, unsigned int flags) {
  return guarded([&](Driver& driver) {
    *stream = driver.make_stream((flags & 1) == 0);
    return success;
  });
}
Result create_stream_with_priority(Stream** stream, unsigned int flags, int) { return create_stream(stream, flags); }

Result destroy_stream(Stream* stream) {
  return guarded([&](Driver& driver) {
    if (driver.streams.count(stream) == 0) return driver.fail(invalid_handle, "the stream does not exist");
    driver.destroy_stream(stream);
    return success;
  });
}

Result synchronize_stream(Stream* stream) {
  return guarded([&](Driver& driver) {
    if (!driver.known(stream)) return driver.fail(invalid_handle, "the stream does not exist");
    auto& of = driver.resolve(stream);
    if (of.capture != nullptr) return driver.fail(stream_capture_unsupported, "the stream is being captured");
    if (&of == &driver.null_stream) driver.drain_blocking();
    driver.drain(of);
    return driver.status();
  });
}

// Asking makes one step of progress, so that a loop that only asks comes to an end.
Result query_stream(Stream* stream) {
  return guarded([&](Driver& driver) {
    if (!driver.known(stream)) return driver.fail(invalid_handle, "the stream does not exist");
    auto& of = driver.resolve(stream);
    if (of.capture != nullptr) return driver.fail(stream_capture_unsupported, "the stream is being captured");
    if (!of.work.empty()) {
      const auto waits = of.work.size();
      if (waits > 1) {
        auto first = std::move(of.work.front());
        of.work.pop_front();
        if (first.wait != nullptr && driver.events.count(first.wait) != 0) driver.finish_event(*first.wait);
        if (first.run) first.run();
      } else {
        driver.drain(of);
      }
      return not_ready;
    }
    return driver.status();
  });
}

Result stream_flags(Stream* stream, unsigned int* flags) {
  return guarded([&](Driver& driver) {
    if (!driver.known(stream)) return driver.fail(invalid_handle, "the stream does not exist");
    *flags = driver.resolve(stream).blocking ? 0 : 1;
    return success;
  });
}

Result wait_event(Stream* stream, Event* event, unsigned int) {
  return guarded([&](Driver& driver) { return driver.wait_for_event(stream, event); });
}

Result host_function(Stream* stream, void (*function)(void*), void* data) {
  return guarded([&](Driver& driver) { return driver.enqueue(stream, [function, data] { function(data); }); });
}

Result create_event(Event** event, unsigned int) {
  return guarded([&](Driver& driver) {
    *event = new Event;
    driver.events.insert(*event);
    return success;
  });
}

Result destroy_event(Event* event) {
  return guarded([&](Driver& driver) {
    if (driver.events.count(event) == 0) return driver.fail(invalid_handle, "the event does not exist");
    driver.finish_event(*event);
    driver.events.erase(event);
    delete event;
    return success;
  });
}

Result record_event(Event* event, Stream* stream) {
  return guarded([&](Driver& driver) {
    if (driver.events.count(event) == 0) return driver.fail(invalid_handle, "the event does not exist");
    if (!driver.known(stream)) return driver.fail(invalid_handle, "the stream does not exist");
    auto& on = driver.resolve(stream);
    event->capture = on.capture;
    if (on.capture != nullptr) return success;  // a graph's work is recorded in an order that satisfies its events
    const auto ticket = ++driver.tickets;
    event->recorded = ticket;
    event->stream = &on;
    return driver.enqueue(stream, [&driver, event, ticket] {
      if (driver.events.count(event) == 0) return;
      event->happened = ticket;
      event->seconds = driver.clock_seconds;
    });
  });
}
Result record_event_with_flags(Event* event, Stream* stream, unsigned int) { return record_event(event, stream); }

Result synchronize_event(Event* event) {
  return guarded([&](Driver& driver) {
    if (driver.events.count(event) == 0) return driver.fail(invalid_handle, "the event does not exist");
    if (event->capture != nullptr) return driver.fail(captured_event, "the event was recorded in a capture");
    driver.finish_event(*event);
    return driver.status();
  });
}

Result query_event(Event* event) {
  return guarded([&](Driver& driver) {
    if (driver.events.count(event) == 0) return driver.fail(invalid_handle, "the event does not exist");
    if (event->capture != nullptr) return driver.fail(captured_event, "the event was recorded in a capture");
    if (event->happened < event->recorded) {
      driver.finish_event(*event);
      return not_ready;
    }
    return driver.status();
  });
}

// Emulated work takes no time that would mean anything; the clock moves with the instructions that launches execute.
Result elapsed(float* milliseconds, Event* from, Event* to) {
  return guarded([&](Driver& driver) {
    if (driver.events.count(from) == 0 || driver.events.count(to) == 0) {
      return driver.fail(invalid_handle, "the event does not exist");
    }
    if (from->recorded == 0 || to->recorded == 0) return driver.fail(invalid_handle, "an event was never recorded");
    if (from->happened < from->recorded || to->happened < to->recorded) return not_ready;
    *milliseconds = static_cast<float>((to->seconds - from->seconds) * 1e3);
    return success;
  });
}

Result begin_capture(Stream* stream, int) {
  return guarded([&](Driver& driver) {
    if (!driver.known(stream)) return driver.fail(invalid_handle, "the stream does not exist");
    auto& on = driver.resolve(stream);
    if (&on == &driver.null_stream)
      return driver.fail(stream_capture_unsupported, "the null stream cannot be captured");
    if (on.capture != nullptr) return driver.fail(invalid_value, "the stream is being captured already");
    auto* graph = new Graph;
    graph->origin = &on;
    driver.graphs.insert(graph);
    on.capture = graph;
    on.capture_origin = true;
    return success;
  });
}

Result end_capture(Stream* stream, Graph** graph) {
  return guarded([&](Driver& driver) {
    if (!driver.known(stream)) return driver.fail(invalid_handle, "the stream does not exist");
    auto& on = driver.resolve(stream);
    if (on.capture == nullptr) return driver.fail(invalid_value, "the stream is not being captured");
    if (!on.capture_origin) return driver.fail(stream_capture_unmatched, "the capture began on another stream");
    auto* done = on.capture;
    for (auto* other : driver.streams) {
      if (other->capture == done) other->capture = nullptr;
    }
    for (auto* event : driver.events) {
      if (event->capture == done) event->capture = nullptr;
    }
    on.capture_origin = false;
    *graph = done;
    return success;
  });
}

Result is_capturing(Stream* stream, int* status) {
  return guarded([&](Driver& driver) {
    if (!driver.known(stream)) return driver.fail(invalid_handle, "the stream does not exist");
    *status = driver.resolve(stream).capture != nullptr ? 1 : 0;
    return success;
  });
}

Result exchange_mode(int* mode) {
  static thread_local int current = 0;
  std::swap(*mode, current);
  return success;
}

Result instantiate(GraphExec** exec, Graph* graph, unsigned long long) {
  return guarded([&](Driver& driver) {
    if (driver.graphs.count(graph) == 0) return driver.fail(invalid_value, "the graph does not exist");
    *exec = new GraphExec{graph->nodes};
    driver.graph_execs.insert(*exec);
    return success;
  });
}

Result launch_graph(GraphExec* exec, Stream* stream) {
  return guarded([&](Driver& driver) {
    if (driver.graph_execs.count(exec) == 0) return driver.fail(invalid_value, "the graph does not exist");
    return driver.enqueue(stream, [nodes = exec->nodes] {
      for (const auto& node : nodes) node();
    });
  });
}

Result destroy_graph(Graph* graph) {
  return guarded([&](Driver& driver) {
    if (driver.graphs.erase(graph) == 0) return driver.fail(invalid_value, "the graph does not exist");
    delete graph;
    return success;
  });
}

Result destroy_exec(GraphExec* exec) {
  return guarded([&](Driver& driver) {
    if (driver.graph_execs.erase(exec) == 0) return driver.fail(invalid_value, "the graph does not exist");
    delete exec;
    return success;
  });
}

}  // namespace

std::vector<EntryPoint> stream_entry_points() {
  return {
      {"cuStreamCreate", address_of(create_stream)},
      {"cuStreamCreateWithPriority", address_of(create_stream_with_priority)},
      {"cuStreamDestroy", address_of(destroy_stream)},
      {"cuStreamDestroy_v2", address_of(destroy_stream)},
      {"cuStreamSynchronize", address_of(synchronize_stream)},
      {"cuStreamQuery", address_of(query_stream)},
      {"cuStreamGetFlags", address_of(stream_flags)},
      {"cuStreamWaitEvent", address_of(wait_event)},
      {"cuLaunchHostFunc", address_of(host_function)},
      {"cuEventCreate", address_of(create_event)},
      {"cuEventDestroy", address_of(destroy_event)},
      {"cuEventDestroy_v2", address_of(destroy_event)},
      {"cuEventRecord", address_of(record_event)},
      {"cuEventRecordWithFlags", address_of(record_event_with_flags)},
      {"cuEventSynchronize", address_of(synchronize_event)},
      {"cuEventQuery", address_of(query_event)},
      {"cuEventElapsedTime", address_of(elapsed)},
      {"cuEventElapsedTime_v2", address_of(elapsed)},
      {"cuStreamBeginCapture", address_of(begin_capture)},
      {"cuStreamBeginCapture_v2", address_of(begin_capture)},
      {"cuStreamEndCapture", address_of(end_capture)},
      {"cuStreamIsCapturing", address_of(is_capturing)},
      {"cuThreadExchangeStreamCaptureMode", address_of(exchange_mode)},
      {"cuGraphInstantiate", address_of(instantiate)},
      {"cuGraphInstantiateWithFlags", address_of(instantiate)},
      {"cuGraphLaunch", address_of(launch_graph)},
      {"cuGraphDestroy", address_of(destroy_graph)},
      {"cuGraphExecDestroy", address_of(destroy_exec)},
  };
}

}  // namespace tigon::emulator::driver
