// Small kernels in PTX for tests of one check each: a frame with registers, a buffer and two shared arrays.
#pragma once
#include "run_kernel.hpp"

namespace emulator_test {

// %rd1 is the parameter `buffer`; %r1 the thread, %r2 the block, %r3 and %r4 the addresses of `first` and `second`.
std::string small_kernel(const std::string& body);

// Runs `body` under every schedule with a buffer of 1024 zeroed words; the faults that all of them reported.
struct Faults {
  std::vector<Fault> always;
  std::vector<Fault> ever;
  bool never_clean = true;  // every schedule reported something, though not the same
  std::string text;
  std::vector<std::uint32_t> words;  // of the buffer, after the last schedule
};
Faults faults_of(const std::string& body, Grid grid = {});

// The buffer after `body`, which must be clean under every schedule and always give the same.
std::vector<std::uint32_t> words_of(const std::string& body, Grid grid = {});

// %rd2 = the address of the buffer's word with number `reg`.
std::string word_address(const std::string& reg);

}  // namespace emulator_test
