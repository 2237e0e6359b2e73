// `tigon bench --emulate`: ops against the first quality bar, as a table or as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "codegen/plan/print.hpp"
#include "emulated.hpp"
#include "paint.hpp"
#include "runtime/cuda/driver.hpp"
#include "tigon/error.hpp"
#include "traffic.hpp"

namespace tigon::tools {
namespace {

// Aligned, with rows that fit in a block's registers, and small enough that the emulator takes seconds.
struct Case {
  std::string_view op;
  bool gradient;
  const char* axes;
  double exponentials;  // per element, as few as an algorithm needs that keeps the row on chip
};
constexpr Case cases[] = {
    {"rms_norm", false, "tokens=8192,hidden=512", 0},
    {"rms_norm", true, "tokens=8192,hidden=512", 0},
    {"softmax", false, "tokens=256,vocab=4096", 1},
    {"softmax", true, "tokens=256,vocab=4096", 1},
    {"cross_entropy", false, "tokens=256,vocab=4096", 1},
    {"cross_entropy", true, "tokens=256,vocab=4096", 1},
    {"swiglu", false, "tokens=256,hidden=4096", 1},
    {"swiglu", true, "tokens=256,hidden=4096", 1},
    {"rope", false, "tokens=256,heads=8,channels=128", 0},
    {"rope", true, "tokens=256,heads=8,channels=128", 0},
    {"adamw", false, "elements=1048576", 0},
};

// An op at extents that are run, and at those that it is compiled for: the catalogue's, unless others are asked for.
struct Chosen {
  std::vector<Choice> run, compiled;
};

void choose_case(const Asked& asked, std::string_view op, bool gradient, const std::string& axes, Chosen& chosen) {
  Asked one = asked;
  one.op = op;
  one.gradient = gradient;
  const ops::OpEntry& entry = op_named(one.op);
  const bool has_bf16 = std::find(entry.dtypes.begin(), entry.dtypes.end(), DType::bf16) != entry.dtypes.end();
  if (one.dtype.empty() && has_bf16) one.dtype = "bf16";
  chosen.compiled.push_back(choose(one));
  if (one.axes.empty() && !axes.empty()) one.axes = {axes};
  constexpr std::int64_t largest_default = 256;
  chosen.run.push_back(choose(one, largest_default));
  chosen.run.back().options.device = Device::cuda();
}

Chosen chosen(const Asked& asked, const std::vector<std::string>& ops) {
  Chosen choices;
  if (ops.empty()) {
    for (const Case& one : cases) {
      if (one.gradient || !asked.gradient) choose_case(asked, one.op, one.gradient, one.axes, choices);
    }
    return choices;
  }
  for (const std::string& op : ops) {
    std::string axes;
    for (const Case& one : cases) {
      if (one.op == op && one.gradient == asked.gradient) axes = one.axes;
    }
    choose_case(asked, op, asked.gradient, axes, choices);
  }
  return choices;
}

constexpr const char* what_counts =
    "  moved      32-byte sectors of global memory, each that a launch reads once and each that it writes once: what\n"
    "             caches that hold everything would leave; against arguments and results once\n"
    "  asked      sectors that warps ask for, with no cache before them: a row of weights counts for each block, and\n"
    "             a sector of which two accesses take a half each counts twice\n"
    "  wide       share of bytes in accesses of 16 bytes a lane\n"
    "  conflicts  passes over the banks of shared memory beyond the fewest, per access of a warp\n"
    "  exp        exponentials of the hardware per element of the largest tensor (and as many as are needed)\n";

std::string verdict(const std::vector<Bar>& all, std::string_view name, const std::string& text) {
  for (const Bar& bar : all) {
    if (bar.name == name)
      return paint(bar.met ? Colour::green : Colour::yellow, text + (bar.met ? " pass " : " SHORT"));
  }
  return text + " -    ";
}

std::string table(const std::vector<Traffic>& all, const std::string& device) {
  std::size_t width = 4;
  for (const Traffic& one : all) width = std::max(width, one.name.size());
  std::string text = paint(Colour::bold, "counted on " + device + " (emulated)") + "\n";
  text += fmt::format("  {:{}}  {:>9}  {:>12}  {:>12}  {:>14}  {:>14}  {:>16}  {}\n", "op", width, "minimum", "moved",
                      "asked", "wide", "conflicts", "exp", "extents");
  for (const Traffic& one : all) {
    const std::vector<Bar> met = bars(one);
    const std::string needed =
        one.needed_exponentials < 0 ? std::string("?") : fmt::format("{:.0f}", one.needed_exponentials);
    text += fmt::format("  {:{}}  {:>9}  {}  {}  {}  {}  {}  {} {}\n", one.name, width, plan::traffic_text(one.minimum),
                        verdict(met, "moved", fmt::format("{:5.2f}x", one.moved / one.minimum)),
                        verdict(met, "asked", fmt::format("{:5.2f}x", one.asked / one.minimum)),
                        verdict(met, "wide", fmt::format("{:6.1f} %", 100 * one.wide_share)),
                        verdict(met, "conflicts", fmt::format("{:6.1f} %", 100 * one.conflicts)),
                        verdict(met, "exponentials", fmt::format("{:6.2f} ({})", one.exponentials, needed)), one.dtype,
                        one.extents);
  }
  text += what_counts;
  text += "\n" + paint(Colour::bold, "registers of a thread, the most of an op's kernels") + "\n";
  text += fmt::format("  {:{}} ", "op", width);
  for (const char* architecture : architectures) text += fmt::format(" {:>9}", architecture);
  text += "  spills         extents\n";
  for (const Traffic& one : all) {
    text += fmt::format("  {:{}} ", one.name, width);
    int most = 0;
    for (const KernelNeeds& needs : one.needs) {
      text += fmt::format(" {:>9}", needs.registers);
      most = std::max(most, needs.local_bytes);
    }
    text += verdict(bars(one), "spills", fmt::format(" {:>5} B", most)) + "  " + one.compiled_extents + "\n";
  }
  std::string notes;
  for (const Traffic& one : all) {
    if (one.rows_read_again)
      notes += one.name + ": some row is not held on chip, by plan, and is read more than once\n";
    if (one.has_products) notes += one.name + ": matrix products are the library's and are not counted\n";
  }
  std::size_t met = 0, asked = 0;
  for (const Traffic& one : all) {
    for (const Bar& bar : bars(one)) {
      met += bar.met ? 1 : 0;
      ++asked;
    }
  }
  return text + (notes.empty() ? "" : "\n" + notes) + fmt::format("\n{} of {} bars met\n", met, asked);
}

std::string as_json(const std::vector<Traffic>& all, const std::string& device) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Traffic& one : all) {
    nlohmann::ordered_json met = nlohmann::ordered_json::object(), needs = nlohmann::ordered_json::object();
    for (const Bar& bar : bars(one)) met[bar.name] = bar.met;
    for (std::size_t i = 0; i < one.needs.size(); ++i) {
      needs[architectures[i]] = {{"kernels", one.needs[i].kernels},
                                 {"registers", one.needs[i].registers},
                                 {"spill_bytes", one.needs[i].spill_bytes},
                                 {"local_bytes", one.needs[i].local_bytes}};
    }
    list.push_back({{"op", one.name},
                    {"dtype", one.dtype},
                    {"extents", one.extents},
                    {"minimum_bytes", one.minimum},
                    {"moved_bytes", one.moved},
                    {"asked_bytes", one.asked},
                    {"wide_share", one.wide_share},
                    {"shared_accesses", one.shared_accesses},
                    {"conflicts_per_shared_access", one.conflicts},
                    {"exponentials_per_element", one.exponentials},
                    {"rows_read_again", one.rows_read_again},
                    {"has_matrix_products", one.has_products},
                    {"compiled_extents", one.compiled_extents},
                    {"architectures", needs},
                    {"met", met}});
    if (one.needed_exponentials >= 0) list.back()["needed_exponentials_per_element"] = one.needed_exponentials;
  }
  return nlohmann::ordered_json{{"device", device}, {"ops", list}}.dump(2) + "\n";
}

}  // namespace

int bench_emulated(const Asked& asked, const std::vector<std::string>& ops, bool json) {
  if (asked.target != "cpu") {
    throw Error({.argument = "--target",
                 .found = asked.target,
                 .cure = "TIGON_EMULATED_GPU chooses the device, as in TIGON_EMULATED_GPU=a100"},
                "--emulate counts on the emulated device");
  }
  if (!asked.axes.empty() && ops.size() != 1) {
    throw Error({.argument = "--axes", .found = fmt::format("{} ops", ops.size()), .expected = "one op"},
                "extents belong to one op");
  }
  ::setenv("TIGON_CUDA_DRIVER", "emulated", 0);  // or the path of one, where it is set
  const std::string device = runtime::CudaDriver::get().device(0).name;
  clear_emulated_counters();  // throws where the driver is a real one
  const Chosen choices = chosen(asked, ops);
  std::vector<Traffic> all;
  for (const Choice& choice : choices.run) {
    require_memory(choice, argument_bytes(*choice.graph, choice.extents) * 16);  // doubles, both sides, shadows
    all.push_back(count_traffic(choice));
    for (const Case& one : cases) {
      if (one.op == choice.entry->name && one.gradient == choice.op.gradient && asked.options.empty())
        all.back().needed_exponentials = one.exponentials;
    }
  }
  read_needs(choices.compiled, all);
  out(json ? as_json(all, device) : table(all, device));
  return exit_ok;
}

}  // namespace tigon::tools
