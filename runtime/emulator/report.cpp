// What the checks found: one report per kind and instruction, however often it happened.
#include "runtime/emulator/report.hpp"

namespace tigon::emulator {

std::string_view fault_name(Fault fault) {
  switch (fault) {
    case Fault::out_of_bounds:
      return "out of bounds";
    case Fault::freed:
      return "use of freed memory";
    case Fault::misaligned:
      return "misaligned";
    case Fault::uninitialized:
      return "uninitialized read";
    case Fault::read_only:
      return "store to read-only memory";
    case Fault::forbidden:
      return "forbidden bytes";
    case Fault::copy_pending:
      return "asynchronous copy not waited for";
    case Fault::race_write_read:
      return "race: read after another thread's write";
    case Fault::race_read_write:
      return "race: write after another thread's read";
    case Fault::race_write_write:
      return "race: write after another thread's write";
    case Fault::block_exited:
      return "shared memory of a block that may have exited";
    case Fault::divergent_barrier:
      return "barrier reached by part of a warp";
    case Fault::deadlock:
      return "barrier that never completes";
    case Fault::absent_lane:
      return "mask names lanes that do not take part";
    case Fault::trap:
      return "trap";
  }
  return "unknown";
}

std::string Report::text() const {
  auto where = cuda_line ? fmt::format("{}:{}", file.empty() ? "line" : file, line) : fmt::format("PTX line {}", line);
  if (called_from != 0) where += fmt::format(" (inlined into line {})", called_from);
  return fmt::format("{} in {} at {}, block {} thread {}, {} time{}: {} [{}]", fault_name(fault), kernel, where, block,
                     thread, count, count == 1 ? "" : "s", detail, instruction);
}

Report* Reports::add(Fault fault, const void* program, std::uint32_t instruction) {
  const auto [at, fresh] = index_.try_emplace(Key{fault, program, instruction}, reports_.size());
  if (fresh) reports_.emplace_back().fault = fault;
  auto& report = reports_[at->second];
  ++report.count;
  return fresh ? &report : nullptr;
}

std::vector<Report> Reports::all() const { return reports_; }

void Reports::clear() {
  index_.clear();
  reports_.clear();
}

}  // namespace tigon::emulator
