// Describes the machine, prints the table row by row, writes the JSON.
#include "benchmarks/report.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "benchmarks/plain_copy.hpp"
#include "runtime/cpu/parallel.hpp"
#include "runtime/cpu_features.hpp"
#include "tigon/error.hpp"

namespace tigon::benchmarks {
namespace {

double load_average() {
  double loads[1] = {0};
  return getloadavg(loads, 1) == 1 ? loads[0] : -1;
}

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown CPU";
}

std::string describe_machine() {
  const runtime::Machine machine = runtime::machine();
  return fmt::format("{}, {} cores, {}-byte vectors, caches {} KiB / {} KiB / {} KiB", cpu_name(), machine.cores,
                     machine.vector_bytes, machine.l1_bytes / 1024, machine.l2_bytes / 1024, machine.l3_bytes / 1024);
}

std::string now_as_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

bool meets(const Row& row) {
  if (row.goal_kind == Goal::none || !row.share) return true;
  return row.goal_kind == Goal::at_least ? *row.share >= row.goal : *row.share <= row.goal;
}

// How far the share is on the wrong side of the goal.
double shortfall(const Row& row) {
  return meets(row) ? 0 : row.goal_kind == Goal::at_least ? row.goal - *row.share : *row.share - row.goal;
}

// A share with a lower bound reads as per cent of the limit, any other as a multiple of it.
std::string ratio_text(const Row& row, double ratio) {
  return row.goal_kind == Goal::at_least ? fmt::format("{:.1f} %", 100 * ratio) : fmt::format("{:.2f}x", ratio);
}

std::string goal_text(const Row& row) {
  if (row.goal_kind == Goal::none) return "-";
  return (row.goal_kind == Goal::at_least ? ">= " : "<= ") + ratio_text(row, row.goal);
}

std::string verdict(const Row& row) {
  if (row.goal_kind == Goal::none) return "-";
  return meets(row) ? "meets" : "short by " + ratio_text(row, shortfall(row));
}

void print_line(const std::string& name, const std::string& measured, const std::string& limit,
                const std::string& share, const std::string& goal, const std::string& result, const std::string& load,
                const std::string& note) {
  const std::string line = fmt::format("{:<51} {:>13} {:>13} {:>8} {:>9} {:<15} {:>5}  {}", name, measured, limit,
                                       share, goal, result, load, note);
  std::puts(line.substr(0, line.find_last_not_of(' ') + 1).c_str());
  std::fflush(stdout);
}

}  // namespace

Report::Report(const Settings& settings)
    : quick_(settings.quick), machine_(describe_machine()), date_(now_as_text()), threads_(runtime::worker_limit()) {}

void Report::print_head() const {
  std::puts(fmt::format("{}\n{} threads, {}, load average {:.2f}; copies use {}{}\n", machine_, threads_, date_,
                        load_average(), PlainCopy::instructions(),
                        quick_ ? "\n--quick: small arrays, few pairs; these numbers measure nothing" : "")
                .c_str());
  print_line("name", "measured", "limit", "share", "goal", "result", "load", "note");
}

void Report::add(Row row) {
  const double load = load_average();
  print_line(row.name, fmt::format("{:.4g} {}", row.measured, row.unit),
             row.limit ? fmt::format("{:.4g} {}", *row.limit, row.unit) : "-",
             row.share ? ratio_text(row, *row.share) : "-", goal_text(row), verdict(row), fmt::format("{:.1f}", load),
             row.note);
  entries_.push_back({std::move(row), load});
}

void Report::add_text(std::string text) {
  std::puts(text.c_str());
  texts_.push_back(std::move(text));
}

bool Report::all_met() const {
  bool all = true;
  for (const Entry& entry : entries_) all = all && meets(entry.row);
  return all;
}

void Report::write_json(const std::string& path) const {
  nlohmann::ordered_json root;
  root["format"] = 1;
  root["machine"] = machine_;
  root["threads"] = threads_;
  root["date"] = date_;
  root["quick"] = quick_;
  root["copy"] = PlainCopy::instructions();
  root["rows"] = nlohmann::ordered_json::array();
  const auto optional = [](const std::optional<double>& value) {
    return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
  };
  for (const auto& [row, load] : entries_) {
    nlohmann::ordered_json entry;
    entry["name"] = row.name;
    entry["unit"] = row.unit;
    entry["measured"] = row.measured;
    entry["limit"] = optional(row.limit);
    entry["share"] = optional(row.share);
    const bool has_goal = row.goal_kind != Goal::none;
    entry["goal"] = has_goal ? nlohmann::ordered_json(row.goal) : nlohmann::ordered_json();
    entry["goal_kind"] = row.goal_kind == Goal::at_least ? "at least" : has_goal ? "at most" : "none";
    entry["meets"] = has_goal ? nlohmann::ordered_json(meets(row)) : nlohmann::ordered_json();
    entry["short_by"] = has_goal ? nlohmann::ordered_json(shortfall(row)) : nlohmann::ordered_json();
    entry["load_average"] = load;
    entry["note"] = row.note;
    root["rows"].push_back(std::move(entry));
  }
  root["texts"] = texts_;
  std::ofstream file(path);
  file << root.dump(2) << '\n';
  file.close();
  if (!file) throw Error({.kind = ErrorKind::usage, .argument = "--json", .found = path}, "the file cannot be written");
}

}  // namespace tigon::benchmarks
