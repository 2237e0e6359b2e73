// Streams, events and graphs: work in order, missing waits that show when streams are delayed, captures.
#include "driver_functions.hpp"

using namespace emulator_test;
using tigon::emulator::Options;
using tigon::emulator::Order;

namespace {

// b = a + 1 on one stream, c = b + 1 on another, with or without an event between them; true if c is right.
bool two_streams(bool with_event, std::uint64_t seed) {
  Options options;
  options.schedule = {Order::seeded, seed, false};
  options.delay_streams = true;
  options.faults_are_errors = false;
  Session session(options);
  auto* kernel = session.load(increment_ptx(), "test");
  auto a = session.allocate(128);
  auto b = session.allocate(128);
  auto c = session.allocate(128);
  call<api::Pointer, unsigned, std::size_t>("cuMemsetD32", a, 40, 32);
  auto* first = session.make_stream();
  auto* second = session.make_stream();
  session.launch(kernel, 1, 32, first, {&b, &a});
  if (with_event) {
    api::Event* event = nullptr;
    call<api::Event**, unsigned>("cuEventCreate", &event, 2);
    call<api::Event*, api::Stream*>("cuEventRecord", event, first);
    call<api::Stream*, api::Event*, unsigned>("cuStreamWaitEvent", second, event, 0);
  }
  session.launch(kernel, 1, 32, second, {&c, &b});
  call<api::Stream*>("cuStreamSynchronize", second);
  int result = 0;
  session.get(&result, c, 4);
  return result == 42 && tigon::emulator::reports().empty();
}

}  // namespace

TEST_CASE("an event orders two streams; a missing one shows when streams are delayed") {
  bool always = true;
  bool sometimes_wrong = false;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    always &= two_streams(true, seed);
    sometimes_wrong |= !two_streams(false, seed);
  }
  CHECK(always);
  CHECK(sometimes_wrong);
}

TEST_CASE("the host sees work only when it has waited for the stream") {
  Session session({.delay_streams = true});
  auto* kernel = session.load(increment_ptx(), "test");
  auto a = session.allocate(128);
  call<api::Pointer, unsigned, std::size_t>("cuMemsetD32", a, 1, 32);
  auto* stream = session.make_stream();
  session.launch(kernel, 1, 32, stream, {&a, &a});
  int result = 0;
  session.get(&result, a, 4);
  CHECK(result == 1);  // a stream that does not block with the null stream
  CHECK(call<api::Stream*>("cuStreamQuery", stream) == api::not_ready);
  CHECK(call<api::Stream*>("cuStreamQuery", stream) == api::success);
  session.get(&result, a, 4);
  CHECK(result == 2);
  auto* blocking = session.make_stream(true);
  session.launch(kernel, 1, 32, blocking, {&a, &a});
  session.get(&result, a, 4);
  CHECK(result == 3);
}

TEST_CASE("pageable memory is read when a copy is asked for, pinned memory when it is made") {
  Session session({.delay_streams = true});
  auto* stream = session.make_stream();
  auto a = session.allocate(4);
  auto b = session.allocate(4);
  int pageable = 7;
  void* pinned = nullptr;
  REQUIRE(call<void**, std::size_t, unsigned>("cuMemHostAlloc", &pinned, 4, 0) == api::success);
  *static_cast<int*>(pinned) = 7;
  call<api::Pointer, const void*, std::size_t, api::Stream*>("cuMemcpyHtoDAsync_v2", a, &pageable, 4, stream);
  call<api::Pointer, const void*, std::size_t, api::Stream*>("cuMemcpyHtoDAsync_v2", b, pinned, 4, stream);
  pageable = 8;
  *static_cast<int*>(pinned) = 8;
  call<api::Stream*>("cuStreamSynchronize", stream);
  int result = 0;
  session.get(&result, a, 4);
  CHECK(result == 7);
  session.get(&result, b, 4);
  CHECK(result == 8);
  unsigned type = 0;
  CHECK(call<void*, int, api::Pointer>("cuPointerGetAttribute", &type, 2, reinterpret_cast<api::Pointer>(pinned)) ==
        api::success);
  CHECK(type == 1);
  CHECK(call<void*, int, api::Pointer>("cuPointerGetAttribute", &type, 2, a) == api::success);
  CHECK(type == 2);
  CHECK(call<void*>("cuMemFreeHost", pinned) == api::success);
}

TEST_CASE("memory is allocated and freed in the order of a stream") {
  Session session({.delay_streams = true});
  auto* kernel = session.load(increment_ptx(), "test");
  auto* stream = session.make_stream();
  api::Pointer a = 0;
  REQUIRE(call<api::Pointer*, std::size_t, api::Stream*>("cuMemAllocAsync", &a, 128, stream) == api::success);
  call<api::Pointer, unsigned, std::size_t, api::Stream*>("cuMemsetD32Async", a, 1, 32, stream);
  CHECK(session.launch(kernel, 1, 32, stream, {&a, &a}) == api::success);
  CHECK(call<api::Pointer, api::Stream*>("cuMemFreeAsync", a, stream) == api::success);
  CHECK(call<api::Stream*>("cuStreamSynchronize", stream) == api::success);
  CHECK(session.launch(kernel, 1, 32, stream, {&a, &a}) == api::success);
  CHECK(call<api::Stream*>("cuStreamSynchronize", stream) == api::illegal_address);
}

TEST_CASE("a captured graph runs when it is launched, as often as it is") {
  Session session;
  auto* kernel = session.load(increment_ptx(), "test");
  auto a = session.allocate(128);
  call<api::Pointer, unsigned, std::size_t>("cuMemsetD32", a, 0, 32);
  auto* stream = session.make_stream();
  auto* side = session.make_stream();
  api::Event* event = nullptr;
  call<api::Event**, unsigned>("cuEventCreate", &event, 2);
  REQUIRE(call<api::Stream*, int>("cuStreamBeginCapture_v2", stream, 0) == api::success);
  int capturing = 0;
  call<api::Stream*, int*>("cuStreamIsCapturing", stream, &capturing);
  CHECK(capturing == 1);
  CHECK(session.launch(kernel, 1, 32, stream, {&a, &a}) == api::success);
  call<api::Event*, api::Stream*>("cuEventRecord", event, stream);
  call<api::Stream*, api::Event*, unsigned>("cuStreamWaitEvent", side, event, 0);
  CHECK(session.launch(kernel, 1, 32, side, {&a, &a}) == api::success);
  CHECK(call<api::Stream*>("cuStreamSynchronize", stream) == api::stream_capture_unsupported);
  api::Pointer refused = 0;
  CHECK(call<api::Pointer*, std::size_t>("cuMemAlloc", &refused, 4) == api::stream_capture_unsupported);
  api::Graph* graph = nullptr;
  CHECK(call<api::Stream*, api::Graph**>("cuStreamEndCapture", side, &graph) == api::stream_capture_unmatched);
  REQUIRE(call<api::Stream*, api::Graph**>("cuStreamEndCapture", stream, &graph) == api::success);
  int result = -1;
  session.get(&result, a, 4);
  CHECK(result == 0);
  api::GraphExec* exec = nullptr;
  REQUIRE(call<api::GraphExec**, api::Graph*, unsigned long long>("cuGraphInstantiate", &exec, graph, 0) ==
          api::success);
  CHECK(call<api::Graph*>("cuGraphDestroy", graph) == api::success);
  for (int i = 0; i < 3; ++i) CHECK(call<api::GraphExec*, api::Stream*>("cuGraphLaunch", exec, stream) == api::success);
  session.get(&result, a, 4);
  CHECK(result == 6);
  CHECK(call<api::GraphExec*>("cuGraphExecDestroy", exec) == api::success);
  CHECK(call<api::GraphExec*, api::Stream*>("cuGraphLaunch", exec, stream) == api::invalid_value);
}

TEST_CASE("events tell when work has happened") {
  Session session({.delay_streams = true});
  auto* kernel = session.load(increment_ptx(), "test");
  auto a = session.allocate(128);
  call<api::Pointer, unsigned, std::size_t>("cuMemsetD32", a, 0, 32);
  auto* stream = session.make_stream();
  api::Event* begin = nullptr;
  api::Event* end = nullptr;
  call<api::Event**, unsigned>("cuEventCreate", &begin, 0);
  call<api::Event**, unsigned>("cuEventCreate", &end, 0);
  call<api::Event*, api::Stream*>("cuEventRecord", begin, stream);
  session.launch(kernel, 1, 32, stream, {&a, &a});
  call<api::Event*, api::Stream*>("cuEventRecord", end, stream);
  float milliseconds = 0;
  CHECK(call<float*, api::Event*, api::Event*>("cuEventElapsedTime", &milliseconds, begin, end) == api::not_ready);
  CHECK(call<api::Event*>("cuEventQuery", end) == api::not_ready);
  CHECK(call<api::Event*>("cuEventSynchronize", end) == api::success);
  CHECK(call<float*, api::Event*, api::Event*>("cuEventElapsedTime", &milliseconds, begin, end) == api::success);
  CHECK(milliseconds > 0);
}
