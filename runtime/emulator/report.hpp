// What the checks found: one report per kind and instruction, however often it happened.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tigon::emulator {

enum class Fault : std::uint8_t {
  out_of_bounds,      // not wholly in one allocation, array or parameter
  freed,              // in an allocation that was freed
  misaligned,         // the address is no multiple of the access' size
  uninitialized,      // read before anything was written there
  read_only,          // a store to memory that was declared read-only
  forbidden,          // in bytes that the host declared to be nobody's, such as a row's padding
  copy_pending,       // touched while an asynchronous copy into it was not waited for
  race_write_read,    // a read that is not ordered after another thread's write
  race_read_write,    // a write that is not ordered after another thread's read
  race_write_write,   // a write that is not ordered after another thread's write
  block_exited,       // another block's shared memory, which may have exited
  divergent_barrier,  // a barrier that only part of a warp has reached
  deadlock,           // a barrier that never completes
  absent_lane,        // a warp-wide instruction whose mask names lanes that do not take part
  trap,               // the kernel stopped itself
};

std::string_view fault_name(Fault fault);

struct Report {
  Fault fault = Fault::trap;
  std::string kernel;
  std::string file;               // of the CUDA text, when the PTX has .loc
  std::uint32_t line = 0;         // in the CUDA text, else in the PTX text
  std::uint32_t called_from = 0;  // the line into which an inlined function was put
  bool cuda_line = false;         // whether `line` counts in the CUDA text
  std::uint64_t block = 0;        // of the first occurrence
  std::uint32_t thread = 0;
  std::uint64_t count = 0;  // lanes that did it, over the launch
  std::string instruction;  // as in the PTX
  std::string detail;       // addresses, sizes, the other thread
  [[nodiscard]] std::string text() const;
};

class Reports {
 public:
  // Counts an occurrence; returns the report to fill in when it is the first of its kind there, else null.
  Report* add(Fault fault, const void* program, std::uint32_t instruction);
  [[nodiscard]] std::vector<Report> all() const;  // in the order in which they first happened
  [[nodiscard]] bool empty() const { return reports_.empty(); }
  void clear();

 private:
  struct Key {
    Fault fault;
    const void* program;
    std::uint32_t instruction;
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, std::size_t> index_;
  std::vector<Report> reports_;
};

}  // namespace tigon::emulator
