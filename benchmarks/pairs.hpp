// Times two pieces of work in turns, so that both meet the same machine.
#pragma once
#include <functional>
#include <vector>

namespace tigon::benchmarks {

double now_ns();
double median(std::vector<double> values);

struct Pairs {
  double measured_ns = 0, limit_ns = 0;  // medians
  double limit_over_measured = 0;        // the median of the pairs' own ratios
  int pairs = 0;                         // timed; fewer than asked where time ran out
};

// One run of each that does not count, then `pairs` pairs; every second pair runs the limit first. After a minute the
// pair at hand is the last.
Pairs time_pairs(int pairs, const std::function<void()>& measured, const std::function<void()>& limit);

}  // namespace tigon::benchmarks
