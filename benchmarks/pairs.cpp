// The clock, the median, and the order of turns.
#include "benchmarks/pairs.hpp"

#include <algorithm>
#include <chrono>

namespace tigon::benchmarks {

double now_ns() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

Pairs time_pairs(int pairs, const std::function<void()>& measured, const std::function<void()>& limit) {
  const auto time = [](const std::function<void()>& work) {
    const double start = now_ns();
    work();
    return now_ns() - start;
  };
  constexpr double longest_ns = 60e9;
  const double begin = now_ns();
  measured();
  limit();
  std::vector<double> of_measured, of_limit, ratios;
  for (int pair = 0; pair < pairs && (pair == 0 || now_ns() - begin < longest_ns); ++pair) {
    const bool limit_first = pair % 2 == 1;
    if (limit_first) of_limit.push_back(time(limit));
    of_measured.push_back(time(measured));
    if (!limit_first) of_limit.push_back(time(limit));
    ratios.push_back(of_limit.back() / of_measured.back());
  }
  return {median(of_measured), median(of_limit), median(ratios), static_cast<int>(ratios.size())};
}

}  // namespace tigon::benchmarks
