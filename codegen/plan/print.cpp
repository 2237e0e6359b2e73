// Lays out a plan's facts as text.
#include "codegen/plan/print.hpp"

#include "codegen/plan/facts.hpp"

namespace tigon::plan {
namespace {

// Three significant digits at most, one decimal where the number is below a hundred.
std::string scaled(double value, double step, std::span<const std::string_view> units) {
  std::size_t unit = 0;
  while (unit + 1 < units.size() && value >= step * 0.9995) {
    value /= step;
    ++unit;
  }
  const bool whole = value == std::floor(value) && value < 1000;
  if (whole) return fmt::format("{:.0f} {}", value, units[unit]);
  const int decimals = value < 10 ? 2 : value < 1000 ? 1 : 0;
  return fmt::format("{:.{}f} {}", value, decimals, units[unit]);
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string uses_text(const std::vector<UseFact>& uses) {
  std::string text;
  for (const UseFact& use : uses) {
    text += text.empty() ? "" : ", ";
    text += use.name + ": " + use.type;
    if (use.sweeps > 1) text += fmt::format(" in {} sweeps", use.sweeps);
    if (use.gathered) text += " where indexed";
  }
  return text.empty() ? "nothing" : text;
}

std::string header(const PlanFacts& facts) {
  std::string text = fmt::format("{} on {}", facts.name, facts.device);
  std::string run_time, fixed;
  for (const AxisFact& axis : facts.axes) {
    if (axis.partitions) continue;
    if (axis.fixed)
      fixed += fmt::format("{}{} = {}", fixed.empty() ? "" : ", ", axis.name, axis.extent);
    else
      run_time += fmt::format("{}{} {}", run_time.empty() ? "" : ", ", axis.name, axis.extent);
  }
  if (!run_time.empty()) text += " · " + run_time + " (run time)";
  if (!fixed.empty()) text += (run_time.empty() ? " · " : ", ") + fixed;
  return text + fmt::format(" · workspace {}\n", memory_text(static_cast<double>(facts.workspace_bytes)));
}

// At most two names; the line of what is written has them all.
std::string short_name(const StepFact& step) {
  if (step.writes.size() <= 2) return step.name;
  return fmt::format("{}, {} and {} more", step.writes[0].name, step.writes[1].name, step.writes.size() - 2);
}

class Steps {
 public:
  std::string print(const std::vector<StepFact>& steps) {
    add(steps, 0);
    return std::move(text_);
  }

 private:
  static constexpr int name_width = 30, shape_width = 34;

  void line(int depth, const std::string& rest) {
    std::string bars;
    for (int i = 0; i < depth; ++i) bars += "| ";
    text_ += "  " + bars + rest + "\n";
  }
  void detail(int depth, const std::string& label, const std::string& rest) {
    line(depth, fmt::format("{:13}{:7} {}", "", label, rest));
  }

  void add(const std::vector<StepFact>& steps, int depth) {
    for (const StepFact& step : steps) {
      if (step.kind == StepFact::Kind::loop) {
        line(depth, fmt::format("loop {} by {}: {} chunk{}, {} predicted", step.name, step.chunk, step.chunk_count,
                                step.chunk_count == 1 ? "" : "s", time_text(step.predicted_ns)));
        add(step.body, depth + 1);
        continue;
      }
      std::string shape = step.family;
      if (step.kind == StepFact::Kind::matmul) {
        shape = step.batch == 1 ? fmt::format("{} x {} x {}", step.m, step.n, step.k)
                                : fmt::format("{} of {} x {} x {}", step.batch, step.m, step.n, step.k);
        if (step.accumulate) shape += ", added";
      }
      if (step.kind == StepFact::Kind::fill) shape = fmt::format("= {}", step.value);
      for (std::size_t i = 0; i < step.partitions.size(); ++i) {
        shape += fmt::format("{}{}", i == 0 ? ", " : " + ", step.partitions[i]);
      }
      if (!step.partitions.empty()) {
        const bool one = step.partitions.size() == 1 && step.partitions[0] == 1;
        shape += one ? " partition" : " partitions";
      }
      // The planner predicts no time for fills.
      const std::string time =
          step.kind == StepFact::Kind::fill ? "" : fmt::format("   {} predicted", time_text(step.predicted_ns));
      line(depth, fmt::format("{:>2}  {:7} {:{}}  {:{}}  {:>9} touched (minimum {}){}", step.number, name_of(step.kind),
                              short_name(step), name_width, shape, shape_width, traffic_text(step.bytes),
                              traffic_text(step.minimum_bytes), time));
      if (!step.fused.empty()) detail(depth, "fused", joined(step.fused));
      if (!step.reads.empty()) detail(depth, "reads", uses_text(step.reads));
      detail(depth, "writes", uses_text(step.writes));
      std::string work;
      if (step.flops > 0) work = count_text(step.flops, "FLOP");
      if (step.exponentials > 0) {
        work += (work.empty() ? "" : ", ") + count_text(step.exponentials, "exponentials");
      }
      if (!work.empty()) detail(depth, "work", work);
      if (!step.rounds.empty()) detail(depth, "rounds", joined(step.rounds));
      if (!step.why.empty()) detail(depth, "because", step.why);
      if (!step.provenance.empty()) detail(depth, "from", step.provenance);
    }
  }

  std::string text_;
};

std::string front_table(const std::vector<FrontEntry>& front) {
  if (front.empty()) return "";
  std::string text = fmt::format("\n  {:>9}  {:>9}  strategy\n", "memory", "time");
  for (const FrontEntry& entry : front) {
    text += fmt::format("  {:>9}  {:>9}  {}{}\n", memory_text(entry.workspace_bytes), time_text(entry.predicted_ns),
                        entry.strategy, entry.chosen ? "  <- chosen" : "");
  }
  return text;
}

}  // namespace

std::string memory_text(double bytes) {
  constexpr std::string_view units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  return scaled(bytes, 1024, units);
}
std::string traffic_text(double bytes) {
  constexpr std::string_view units[] = {"B", "kB", "MB", "GB", "TB"};
  return scaled(bytes, 1000, units);
}
std::string time_text(double nanoseconds) {
  constexpr std::string_view units[] = {"ns", "us", "ms", "s"};
  return scaled(nanoseconds, 1000, units);
}
std::string count_text(double count, std::string_view unit) {
  constexpr std::string_view units[] = {"", "k", "M", "G", "T"};
  const std::string text = scaled(count, 1000, units);
  return text.ends_with(' ') || unit != "FLOP" ? text + (text.ends_with(' ') ? "" : " ") + std::string(unit)
                                               : text + std::string(unit);
}

std::string print(const Plan& plan) {
  const PlanFacts facts = facts_of(plan);
  std::string text = header(facts) + "\n" + Steps().print(facts.steps);
  text += fmt::format("\n  total    {} touched (arguments and results once: {}), {} predicted\n",
                      traffic_text(facts.bytes), traffic_text(facts.minimum_bytes), time_text(facts.predicted_ns));
  text += front_table(facts.front);
  if (!facts.notes.empty()) text += "\n";
  for (const Note& note : facts.notes) text += fmt::format("  {:9}{}\n", name_of(note.kind), note.text);
  return text;
}

}  // namespace tigon::plan
