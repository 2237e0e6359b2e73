// The emulated driver's functions with their types, for tests that play the part of a program that uses CUDA.
#pragma once
#include "run_kernel.hpp"
#include "runtime/emulator/driver_types.hpp"
#include "runtime/emulator/emulator.hpp"

namespace emulator_test {

namespace api = tigon::emulator::driver;

template <class Function>
Function* entry(const char* name) {
  auto* address = tigon::emulator::find_entry_point(name);
  if (address == nullptr) throw std::runtime_error(std::string("no entry point ") + name);
  return reinterpret_cast<Function*>(address);
}

// Calls an entry point: call<int, api::Pointer*, std::size_t>("cuMemAlloc", ...).
template <class... Arguments, class... Given>
api::Result call(const char* name, Given... given) {
  return entry<api::Result(Arguments...)>(name)(static_cast<Arguments>(given)...);
}

// A fresh device with a context.
struct Session {
  explicit Session(tigon::emulator::Options options = {});
  ~Session();

  api::Pointer allocate(std::size_t bytes);
  void put(api::Pointer to, const void* from, std::size_t bytes);
  void get(void* to, api::Pointer from, std::size_t bytes);
  api::Kernel* load(const std::string& ptx, const char* kernel);
  api::Result launch(api::Kernel* kernel, unsigned blocks, unsigned threads, api::Stream* stream,
                     std::vector<void*> arguments);
  api::Result synchronize();
  api::Stream* make_stream(bool blocking = false);
  std::string error_text(api::Result result);
};

// test(out, in, n): out[i] = in[i] + 1 for 32-bit integers, without a bounds check.
std::string increment_ptx();

}  // namespace emulator_test
