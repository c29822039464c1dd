// Estimates the importance of parameters by PED-ANOVA.
#include "tare/report/importance.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

namespace tare::report {
namespace {

constexpr size_t kGrid = 50;      // values of a grid at most
constexpr double kBest = 0.1;     // share of the runs that are the best
constexpr double kPrior = 1;      // weight of the kernel that covers the whole grid, in runs
constexpr double kFloor = 1e-12;  // added to densities; a sum below it is rounding

/// How many runs have each value of the grid.
using Counts = std::vector<int64_t>;

/// Returns the number of whole steps from low to high; a high end that no step meets is never
/// drawn.
double steps_of(const SweepParameter& p) { return std::floor((p.high - p.low) / p.step + 1e-9); }

bool is_fixed(const SweepParameter& p) {
  if (!p.choices.empty()) return p.choices.size() == 1;
  if (!std::isfinite(p.high - p.low) || (p.logarithmic && p.low <= 0)) return true;
  return !(p.low < p.high) || (p.step > 0 && !p.logarithmic && steps_of(p) < 1);
}

size_t grid_size(const SweepParameter& p) {
  if (!p.choices.empty()) return p.choices.size();
  double size = kGrid;
  if (p.integer && p.logarithmic)
    size = std::ceil(std::log(p.high - p.low + 1) / std::log(2)) + 1;
  else if (p.step > 0)
    size = steps_of(p) + 1;
  return static_cast<size_t>(std::min<double>(size, kGrid));
}

/// Returns the index of a value on the grid; midway between two it is the lower one.
size_t grid_index(const SweepParameter& p, size_t size, double value) {
  if (!p.choices.empty()) return static_cast<size_t>(value);
  const auto scaled = [&p](double x) { return p.logarithmic ? std::log(x) : x; };
  const double high = p.step > 0 && !p.logarithmic ? p.low + steps_of(p) * p.step : p.high;
  const double width = (scaled(high) - scaled(p.low)) / static_cast<double>(size - 1);
  const double index = std::ceil((scaled(value) - scaled(p.low)) / width - 0.5);
  return static_cast<size_t>(std::clamp(index, 0.0, static_cast<double>(size - 1)));
}

/// Returns the probability that a standard normal number is between a and b; exact in both tails.
double normal_mass(double a, double b) {
  if (a > 0) return normal_mass(-b, -a);
  const double root = std::sqrt(2.0);
  if (b <= 0) return 0.5 * (std::erfc(-b / root) - std::erfc(-a / root));
  return 0.5 * (std::erf(b / root) - std::erf(a / root));
}

/// Returns the grid value below which `rank` runs lie; `after`: the first one beyond them.
double quantile(const Counts& counts, int64_t rank, bool after) {
  int64_t sum = 0;
  size_t last = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    sum += counts[i];
    last = i;
    if (after ? sum > rank : sum >= rank) break;
  }
  return static_cast<double>(last);
}

/// Computes the bandwidth by Scott's rule with the smaller of deviation and interquartile range,
/// but at least so wide that 90 % of a kernel lies within half a step to either side.
double bandwidth(const Counts& counts) {
  double mean = 0, variance = 0;
  int64_t runs = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    runs += counts[i];
    mean += static_cast<double>(counts[i]) * static_cast<double>(i);
  }
  const auto sum = static_cast<double>(runs);
  mean /= sum;
  for (size_t i = 0; i < counts.size(); ++i)
    variance += static_cast<double>(counts[i]) * std::pow(static_cast<double>(i) - mean, 2);
  variance /= std::max(1.0, sum - 1);
  const double range = quantile(counts, runs * 3 / 4, true) - quantile(counts, runs / 4, false);
  return std::max(1.059 * std::min(range / 1.34, std::sqrt(variance)) * std::pow(sum, -0.2),
                  0.5 / 1.64);
}

/// Adds a normal kernel that is cut at the ends of the grid.
void add_kernel(std::vector<double>& density, double centre, double width, double weight) {
  const auto size = static_cast<double>(density.size());
  const double all = normal_mass((-0.5 - centre) / width, (size - 0.5 - centre) / width);
  for (size_t i = 0; i < density.size(); ++i) {
    const double off = static_cast<double>(i) - centre;
    density[i] += weight * normal_mass((off - 0.5) / width, (off + 0.5) / width) / all;
  }
}

std::vector<double> numeric_density(const Counts& counts) {
  const auto size = static_cast<double>(counts.size());
  const double runs =
      static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  const double width = bandwidth(counts);
  std::vector<double> density(counts.size(), 0.0);
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0)
      add_kernel(density, static_cast<double>(i), width,
                 static_cast<double>(counts[i]) / (runs + kPrior));
  add_kernel(density, (size - 1) / 2, size, kPrior / (runs + kPrior));
  return density;
}

/// Each choice that was taken has a kernel that leaves the others a little.
std::vector<double> choice_density(const Counts& counts) {
  const auto choices = static_cast<double>(counts.size());
  const double runs =
      static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  const auto taken =
      static_cast<double>(std::ranges::count_if(counts, [](int64_t count) { return count > 0; }));
  const double little = kPrior / (taken + 1), all = 1 + choices * little;
  const double even = runs * little / all + kPrior / choices;
  std::vector<double> density;
  for (const int64_t count : counts)
    density.push_back((even + static_cast<double>(count) / all) / (runs + kPrior));
  return density;
}

double pearson_divergence(const SweepParameter& p, const Counts& best, const Counts& all) {
  const auto density = p.choices.empty() ? numeric_density : choice_density;
  const std::vector<double> top = density(best), whole = density(all);
  double sum = 0;
  for (size_t i = 0; i < top.size(); ++i) {
    const double reference = whole[i] + kFloor;
    sum += reference * std::pow((top[i] + kFloor) / reference - 1, 2);
  }
  return sum;
}

/// Returns the importance of one parameter, not yet a share. `runs`: the best first, of which
/// `best` are the best.
double importance(const SweepSummary& sweep, const std::vector<const SweepRun*>& runs, size_t best,
                  size_t parameter) {
  const SweepParameter& p = sweep.parameters[parameter];
  if (is_fixed(p)) return 0;
  Counts top(grid_size(p), 0), all = top;
  double top_runs = 0, all_runs = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    const double value = value_of(sweep, *runs[i], parameter);
    if (std::isnan(value)) continue;
    const size_t index = grid_index(p, all.size(), value);
    ++all[index];
    ++all_runs;
    if (i >= best) continue;
    ++top[index];
    ++top_runs;
  }
  if (top_runs == 0 || all_runs < 2) return 0;
  const double top_share = top_runs / static_cast<double>(best);
  const double all_share = all_runs / static_cast<double>(runs.size());
  return top_share * top_share / all_share * pearson_divergence(p, top, all);
}

}  // namespace

Importance importance_of(const SweepSummary& sweep) {
  const auto runs = ranked(sweep);
  Importance result{.shares = std::vector<double>(sweep.parameters.size(), 0.0),
                    .runs = runs.size()};
  if (runs.size() > 1) {
    const auto tenth = static_cast<size_t>(std::ceil(kBest * static_cast<double>(runs.size())));
    const double last = runs[tenth - 1]->value;
    result.best = tenth;
    while (result.best < runs.size() && runs[result.best]->value == last) ++result.best;
    for (size_t i = 0; i < result.shares.size(); ++i)
      result.shares[i] = importance(sweep, runs, result.best, i);
  }
  const double sum = std::accumulate(result.shares.begin(), result.shares.end(), 0.0);
  result.differs = sum > kFloor;
  for (double& share : result.shares)
    share = result.differs ? share / sum : 1 / static_cast<double>(result.shares.size());
  return result;
}

}  // namespace tare::report
