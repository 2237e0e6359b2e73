// The driver's functions: devices, memory, libraries, launches, and how their mistakes are told.
#include "driver_functions.hpp"
#include "kernels.hpp"

using namespace emulator_test;

TEST_CASE("the device is the one of the table that was asked for") {
  Session session({.device = "a100"});
  char name[64] = {};
  CHECK(call<char*, int, int>("cuDeviceGetName", name, 64, 0) == api::success);
  CHECK(std::string(name) == "NVIDIA A100-SXM4-80GB");
  int value = 0;
  const auto attribute = [&](int number) {
    CHECK(call<int*, int, int>("cuDeviceGetAttribute", &value, number, 0) == api::success);
    return value;
  };
  CHECK(attribute(16) == 108);
  CHECK(attribute(75) == 8);
  CHECK(attribute(97) == 163 * 1024);
  CHECK(attribute(120) == 0);
  std::size_t bytes = 0;
  CHECK(call<std::size_t*, int>("cuDeviceTotalMem_v2", &bytes, 0) == api::success);
  CHECK(bytes == std::size_t{80} << 30);
  CHECK(call<int*, int>("cuDeviceGet", &value, 1) == api::invalid_device);
  CHECK_THROWS_WITH(tigon::emulator::reset({.device = "voodoo2"}),
                    Catch::Contains("voodoo2") && Catch::Contains("h200"));
}

TEST_CASE("nothing works before cuInit") {
  tigon::emulator::reset();
  int count = 0;
  CHECK(call<int*>("cuDeviceGetCount", &count) == api::not_initialized);
}

TEST_CASE("names resolve through cuGetProcAddress, with and without a version") {
  Session session;
  void* function = nullptr;
  int status = -1;
  const auto resolve = [&](const char* name) {
    return call<const char*, void**, int, std::uint64_t, int*>("cuGetProcAddress", name, &function, 12000, 0, &status);
  };
  CHECK(resolve("cuMemAlloc") == api::success);
  CHECK(function == tigon::emulator::find_entry_point("cuMemAlloc_v2"));
  CHECK(status == 0);
  CHECK(resolve("cuMakeCoffee") == api::not_found);
  CHECK(status == 1);
  CHECK(tigon::emulator::entry_points().size() > 100);
}

TEST_CASE("a library is loaded, launched and unloaded") {
  Session session;
  auto* kernel = session.load(increment_ptx(), "test");
  std::vector<int> in(256);
  for (int i = 0; i < 256; ++i) in[static_cast<std::size_t>(i)] = i * i;
  auto from = session.allocate(1024);
  auto to = session.allocate(1024);
  session.put(from, in.data(), 1024);
  CHECK(session.launch(kernel, 4, 64, nullptr, {&to, &from}) == api::success);
  CHECK(session.synchronize() == api::success);
  std::vector<int> out(256);
  session.get(out.data(), to, 1024);
  for (int i = 0; i < 256; ++i) CHECK(out[static_cast<std::size_t>(i)] == i * i + 1);
  CHECK(tigon::emulator::counters().global_loaded[2] == 2048);
  CHECK(tigon::emulator::counters().global_stored[2] == 1024);
}

TEST_CASE("module variables are found and can be written by the host") {
  Session session;
  api::Library* library = nullptr;
  const auto text = increment_ptx();
  REQUIRE(call<api::Library**, const void*, int*, void**, unsigned, int*, void**, unsigned>(
              "cuLibraryLoadData", &library, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0) == api::success);
  api::Pointer step = 0;
  std::size_t bytes = 0;
  CHECK(call<api::Pointer*, std::size_t*, api::Library*, const char*>("cuLibraryGetGlobal", &step, &bytes, library,
                                                                      "step") == api::success);
  CHECK(bytes == 4);
  const int ten = 10;
  session.put(step, &ten, 4);
  api::Kernel* kernel = nullptr;
  REQUIRE(call<api::Kernel**, api::Library*, const char*>("cuLibraryGetKernel", &kernel, library, "test") ==
          api::success);
  auto buffer = session.allocate(128);
  call<api::Pointer, unsigned, std::size_t>("cuMemsetD32_v2", buffer, 5, 32);
  CHECK(session.launch(kernel, 1, 32, nullptr, {&buffer, &buffer}) == api::success);
  int result = 0;
  session.get(&result, buffer + 124, 4);
  CHECK(result == 15);
  CHECK(call<api::Library*>("cuLibraryUnload", library) == api::success);
  CHECK(session.launch(kernel, 1, 32, nullptr, {&buffer, &buffer}) == api::invalid_handle);
}

TEST_CASE("binaries are refused, so that the PTX is loaded; PTX for other devices is too") {
  Session session;
  api::Library* library = nullptr;
  const auto load = [&](const std::string& code) {
    return call<api::Library**, const void*, int*, void**, unsigned, int*, void**, unsigned>(
        "cuLibraryLoadData", &library, code.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  };
  CHECK(load("\x7f"
             "ELF and so on") == api::no_binary_for_gpu);
  CHECK(load(".version 9.0\n.target sm_100a\n.address_size 64\n") == api::no_binary_for_gpu);
  CHECK(load(".version 9.0\n.target sm_80\n.address_size 64\n") == api::success);
  CHECK(load(".version 9.0\n.target sm_80a\n.address_size 64\n") == api::no_binary_for_gpu);
}

TEST_CASE("unknown instructions and modifiers fail when they are loaded, with the CUDA line") {
  Session session;
  auto text = increment_ptx();
  const auto load = [&](const std::string& code) {
    api::Library* library = nullptr;
    char log[512] = {};
    int options[] = {5, 6};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
    const auto result = call<api::Library**, const void*, int*, void**, unsigned, int*, void**, unsigned>(
        "cuLibraryLoadData", &library, code.c_str(), options, values, 2, nullptr, nullptr, 0);
    CHECK(result == api::invalid_ptx);
    return std::string(log);
  };
  const auto replaced = [&](const std::string& from, const std::string& to) {
    auto copy = text;
    copy.replace(copy.find(from), from.size(), to);
    return copy;
  };
  const auto unknown = load(replaced("add.s32 %r4", "frobnicate.s32 %r4"));
  CHECK_THAT(unknown, Catch::Contains("increment.cu:5") && Catch::Contains("unknown instruction frobnicate"));
  const auto modifier = load(replaced("add.s32 %r4", "add.sideways.s32 %r4"));
  CHECK_THAT(modifier, Catch::Contains("increment.cu:5") && Catch::Contains("unknown modifier .sideways"));
  CHECK_THAT(load(replaced("%r5;\n  .loc", "%rd5;\n  .loc")), Catch::Contains("%rd5 has 8 bytes"));
  CHECK_THAT(load(replaced("[step]", "[stride]")), Catch::Contains("unknown symbol stride"));
  CHECK_THAT(load(replaced("ret;", "ret")), Catch::Contains("PTX line"));
  CHECK(tigon::emulator::live_allocations() == 0);
}

TEST_CASE("faults become the driver's errors, stay until they are cleared, and name the CUDA line") {
  Session session;
  auto* kernel = session.load(increment_ptx(), "test");
  auto small = session.allocate(124);
  auto large = session.allocate(128);
  call<api::Pointer, unsigned, std::size_t>("cuMemsetD32", large, 5, 32);
  CHECK(session.launch(kernel, 1, 32, nullptr, {&small, &large}) == api::illegal_address);
  CHECK(session.synchronize() == api::illegal_address);
  CHECK(session.launch(kernel, 1, 31, nullptr, {&small, &large}) == api::illegal_address);
  CHECK_THAT(session.error_text(api::illegal_address), Catch::Contains("illegal memory access") &&
                                                           Catch::Contains("increment.cu:6") &&
                                                           Catch::Contains("out of bounds"));
  tigon::emulator::clear_reports();
  CHECK(session.launch(kernel, 1, 31, nullptr, {&small, &large}) == api::success);
  auto odd = large + 2;
  CHECK(session.launch(kernel, 1, 1, nullptr, {&odd, &large}) == api::misaligned_address);
  tigon::emulator::clear_reports();
  auto fresh = session.allocate(128);
  CHECK(session.launch(kernel, 1, 32, nullptr, {&large, &fresh}) == api::launch_failed);
  CHECK(tigon::emulator::reports().front().fault == Fault::uninitialized);
  tigon::emulator::clear_reports();
  CHECK(call<api::Pointer>("cuMemFree", fresh) == api::success);
  CHECK(session.launch(kernel, 1, 32, nullptr, {&large, &fresh}) == api::illegal_address);
  CHECK(tigon::emulator::reports().front().fault == Fault::freed);
}

TEST_CASE("allocations can be read-only and can have bytes that are nobody's") {
  Session session;
  auto* kernel = session.load(increment_ptx(), "test");
  auto a = session.allocate(128);
  auto b = session.allocate(128);
  call<api::Pointer, unsigned, std::size_t>("cuMemsetD32", a, 5, 32);
  REQUIRE(tigon::emulator::make_read_only(a));
  REQUIRE(tigon::emulator::name_allocation(a, "weights"));
  CHECK(session.launch(kernel, 1, 32, nullptr, {&a, &a}) == api::illegal_address);
  CHECK_THAT(tigon::emulator::reports_text(), Catch::Contains("read-only") && Catch::Contains("weights"));
  tigon::emulator::clear_reports();
  REQUIRE(tigon::emulator::forbid(b + 64, 8));
  CHECK(session.launch(kernel, 1, 16, nullptr, {&b, &a}) == api::success);
  CHECK(session.launch(kernel, 1, 17, nullptr, {&b, &a}) == api::launch_failed);
  CHECK(tigon::emulator::reports().front().fault == Fault::forbidden);
}

TEST_CASE("wrong launches are refused") {
  Session session;
  auto* kernel = session.load(read_fixture("rows_sm_90a.ptx"), "scale_rows");
  std::vector<void*> arguments(6, &kernel);
  CHECK(session.launch(kernel, 0, 32, nullptr, arguments) == api::invalid_value);
  CHECK(session.launch(kernel, 1, 257, nullptr, arguments) == api::invalid_value);
  CHECK_THAT(tigon::emulator::last_error(), Catch::Contains("257 threads") && Catch::Contains("256"));
  CHECK(session.launch(nullptr, 1, 32, nullptr, arguments) == api::invalid_handle);
  int value = 0;
  CHECK(call<int*, int, api::Kernel*, int>("cuKernelGetAttribute", &value, 0, kernel, 0) == api::success);
  CHECK(value == 256);
  CHECK(call<int*, int, api::Kernel*, int>("cuKernelGetAttribute", &value, 1, kernel, 0) == api::success);
  CHECK(value == 48);
  CHECK(call<int, int, api::Kernel*, int>("cuKernelSetAttribute", 8, 300 * 1024, kernel, 0) == api::invalid_value);
  CHECK(call<int, int, api::Kernel*, int>("cuKernelSetAttribute", 8, 200 * 1024, kernel, 0) == api::success);
  CHECK(call<int*, api::Kernel*, int, std::size_t>("cuOccupancyMaxActiveBlocksPerMultiprocessor", &value, kernel, 256,
                                                   100 * 1024) == api::success);
  CHECK(value == 2);
}

TEST_CASE("copies outside of allocations are refused") {
  Session session;
  auto a = session.allocate(64);
  char bytes[128] = {};
  CHECK(call<void*, api::Pointer, std::size_t>("cuMemcpyDtoH", bytes, a, 65) == api::invalid_value);
  CHECK(call<api::Pointer, api::Pointer, std::size_t>("cuMemcpyDtoD", a, a + 32, 64) == api::invalid_value);
  CHECK(call<api::Pointer, unsigned, std::size_t>("cuMemsetD32", a, 1, 17) == api::invalid_value);
  CHECK(call<api::Pointer>("cuMemFree", a + 4) == api::invalid_value);
  CHECK(call<api::Pointer>("cuMemFree", a) == api::success);
  CHECK(call<api::Pointer>("cuMemFree", a) == api::invalid_value);
  api::Pointer huge = 0;
  CHECK(call<api::Pointer*, std::size_t>("cuMemAlloc", &huge, std::size_t{1} << 50) == api::out_of_memory);
  CHECK(tigon::emulator::live_allocations() == 0);
}

TEST_CASE("a kernel of a cluster runs through the driver") {
  Session session;
  auto* kernel = session.load(read_fixture("cluster_sm_90a.ptx"), "sum_cluster");
  auto x = session.allocate(8 * 64 * 4);
  auto out = session.allocate(8 * 4);
  std::vector<float> ones(8 * 64, 1.0F);
  session.put(x, ones.data(), ones.size() * 4);
  int count = 64;
  CHECK(session.launch(kernel, 8, 64, nullptr, {&x, &out, &count}) == api::success);
  float result[8] = {};
  session.get(result, out, 32);
  CHECK(result[0] == 256);
  CHECK(result[7] == 256);
  CHECK(session.launch(kernel, 6, 64, nullptr, {&x, &out, &count}) == api::invalid_cluster_size);
}
