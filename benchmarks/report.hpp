// The rows of a run: what was measured beside its limit, their ratio and the goal it is held to; as text and as JSON.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace tigon::benchmarks {

struct Settings {
  bool quick = false;  // small arrays and few pairs: shows that everything runs, measures nothing
  std::string only;    // rows whose name contains this
  int pairs = 15;
  std::string program;  // how to start this program again

  [[nodiscard]] bool wants(const std::string& name) const { return name.find(only) != std::string::npos; }
};

enum class Goal { none, at_least, at_most };

struct Row {
  std::string name;
  std::string unit;
  double measured = 0;
  std::optional<double> limit{};  // in the same unit
  std::optional<double> share{};  // measured / limit
  Goal goal_kind = Goal::none;
  double goal = 0;  // of the share
  std::string note{};
};

class Report {
 public:
  explicit Report(const Settings& settings);

  void print_head() const;
  void add(Row row);                // and prints it
  void add_text(std::string text);  // lines that belong to no row
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] bool all_met() const;
  void write_json(const std::string& path) const;

 private:
  struct Entry {
    Row row;
    double load = 0;  // the machine's load average over a minute when the row was done
  };
  bool quick_;
  std::string machine_, date_;
  int threads_;
  std::vector<Entry> entries_;
  std::vector<std::string> texts_;
};

}  // namespace tigon::benchmarks
