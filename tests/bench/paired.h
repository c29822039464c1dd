// Paired timing: two sides alternate in one process, the ratio of each pair is taken, and the
// median of the ratios is printed with its quartiles. A side against itself gives the band in which
// nothing can be concluded.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

namespace tare::bench {

template <class Work>
double seconds(Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Ratios {
  double low = 0, median = 0, high = 0;  ///< quartiles
  double first_s = 0, second_s = 0;      ///< medians of the two sides
};

inline double quantile(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

/// second / first over `rounds` pairs; each side returns its seconds. The order within a pair
/// alternates.
template <class First, class Second>
Ratios paired(int rounds, First&& first, Second&& second) {
  std::vector<double> ratios, a, b;
  for (int i = 0; i < rounds; ++i) {
    double x = 0, y = 0;
    if (i % 2 == 0) x = first();
    y = second();
    if (i % 2 == 1) x = first();
    a.push_back(x);
    b.push_back(y);
    ratios.push_back(y / x);
  }
  return {quantile(ratios, 0.25), quantile(ratios, 0.5), quantile(ratios, 0.75), quantile(a, 0.5),
          quantile(b, 0.5)};
}

inline void print(const char* what, const Ratios& r) {
  std::printf("%-44s %.3f [%.3f, %.3f]   %.3g ms against %.3g ms\n", what, r.median, r.low, r.high,
              1e3 * r.second_s, 1e3 * r.first_s);
}

}  // namespace tare::bench
