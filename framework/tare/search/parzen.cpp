// Builds Parzen estimators, and draws from them.
#include "tare/search/parzen.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "tare/search/grid.h"
#include "tare/search/normal.h"

namespace tare::search {
namespace {

constexpr size_t kEqualWeights = 25;  // the newest observations, which all weigh 1

/// Returns weights that rise evenly from 1/n to 1 over the older observations and are 1 for the
/// newest ones and the prior, all divided by their sum.
std::vector<double> weights_of(size_t observations) {
  std::vector<double> weights(observations + 1, 1.0);
  const size_t ramp = observations > kEqualWeights ? observations - kEqualWeights : 0;
  for (size_t i = 0; i < ramp; ++i) {
    const double oldest = 1 / static_cast<double>(observations);
    const double share = ramp > 1 ? static_cast<double>(i) / static_cast<double>(ramp - 1) : 0;
    weights[i] = oldest + share * (1 - oldest);
  }
  const double sum = std::reduce(weights.begin(), weights.end());
  for (double& weight : weights) weight /= sum;
  return weights;
}

/// Returns for each mean the larger gap to its neighbours; the ends are neighbours of a single one
/// only.
std::vector<double> widths_of(const std::vector<double>& means, double low, double high) {
  const size_t count = means.size();
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return means[i]; });
  const double least = (high - low) / std::min(100.0, static_cast<double>(count) + 2);
  std::vector<double> widths(count);
  for (size_t i = 0; i < count; ++i) {
    const double mean = means[order[i]];
    double before = mean - (i > 0 ? means[order[i - 1]] : low);
    double after = (i + 1 < count ? means[order[i + 1]] : high) - mean;
    if (count > 1 && i == 0) before = 0;
    if (count > 1 && i + 1 == count) after = 0;
    widths[order[i]] = std::clamp(std::max(before, after), least, high - low);
  }
  return widths;
}

/// Returns the index where a running sum passes `share`.
size_t pick(const std::vector<double>& shares, double share) {
  size_t i = 0;
  for (double sum = shares[0]; sum <= share && i + 1 < shares.size();) sum += shares[++i];
  return i;
}

std::vector<std::vector<double>> shares_of(int64_t choices, const std::vector<double>& values) {
  const auto count = static_cast<size_t>(choices);
  const double prior = 1 / static_cast<double>(values.size() + 1);
  const double sum = 1 + prior * static_cast<double>(choices);
  std::vector<std::vector<double>> shares(values.size(), std::vector(count, prior / sum));
  for (size_t i = 0; i < values.size(); ++i) shares[i][static_cast<size_t>(values[i])] += 1 / sum;
  shares.emplace_back(count, 1 / static_cast<double>(choices));
  return shares;
}

}  // namespace

bool Domain::fixed() const { return choices > 0 ? choices == 1 : low == high; }

bool Domain::contains(double value) const {
  return choices > 0 ? value >= 0 && value < static_cast<double>(choices)
                     : value >= low && value <= high;
}

double Domain::nearest(double value) const {
  if (step > 0) value = low + std::nearbyint((value - low) / step) * step;
  return std::clamp(value, low, high);
}

Domain domain_of(const Parameter& parameter) {
  if (!parameter.range) return {.choices = static_cast<int64_t>(parameter.values.size())};
  const Range& range = *parameter.range;
  Domain domain{.low = range.low, .high = range.high, .log = range.log};
  domain.step = range.step.value_or(range.integer ? 1 : 0);
  if (domain.step > 0)
    domain.high = std::min(range.low + (count_of(parameter) - 1) * domain.step, range.high);
  return domain;
}

Parzen::Kernels Parzen::kernels_of(const Domain& domain, const std::vector<double>& values) {
  Kernels kernels{.domain = domain};
  if (domain.choices > 0) {
    kernels.shares = shares_of(domain.choices, values);
    return kernels;
  }
  const auto scaled = [&](double value) { return domain.log ? std::log(value) : value; };
  const double low = kernels.low = scaled(domain.low - domain.step / 2);
  const double high = kernels.high = scaled(domain.high + domain.step / 2);
  for (const double value : values) kernels.mean.push_back(scaled(value));
  kernels.width = widths_of(kernels.mean, low, high);
  kernels.mean.push_back(low / 2 + high / 2);
  kernels.width.push_back(high - low);
  for (size_t i = 0; i < kernels.mean.size(); ++i) {
    const double mean = kernels.mean[i], width = kernels.width[i];
    kernels.mass.push_back(log_normal_mass((low - mean) / width, (high - mean) / width));
  }
  return kernels;
}

double Parzen::Kernels::log_density(size_t component, double value) const {
  if (domain.choices > 0) return std::log(shares[component][static_cast<size_t>(value)]);
  const auto scaled = [&](double x) {
    return ((domain.log ? std::log(x) : x) - mean[component]) / width[component];
  };
  if (domain.step > 0)
    return log_normal_mass(scaled(value - domain.step / 2), scaled(value + domain.step / 2)) -
           mass[component];
  const double x = scaled(value);
  return -0.5 * x * x - 0.5 * std::log(2 * std::numbers::pi) - std::log(width[component]) -
         mass[component];
}

double Parzen::Kernels::draw(size_t component, CounterRng& rng) const {
  const double share = rng.uniform();
  if (domain.choices > 0) return static_cast<double>(pick(shares[component], share));
  const double middle = mean[component], scale = width[component];
  const double x =
      truncated_normal_quantile(share, (low - middle) / scale, (high - middle) / scale);
  const double value = middle + scale * x;
  return domain.nearest(domain.log ? std::exp(value) : value);
}

Parzen::Parzen(std::vector<Domain> domains, const std::vector<Coordinates>& observations)
    : weights_(weights_of(observations.size())) {
  for (size_t d = 0; d < domains.size(); ++d) {
    std::vector<double> values;
    values.reserve(observations.size());
    for (const auto& observation : observations) values.push_back(observation[d]);
    kernels_.push_back(kernels_of(domains[d], values));
  }
}

double Parzen::log_density(const Coordinates& point) const {
  double most = -std::numeric_limits<double>::infinity();
  std::vector<double> logs(weights_.size());
  for (size_t i = 0; i < logs.size(); ++i) {
    logs[i] = std::log(weights_[i]);
    for (size_t d = 0; d < point.size(); ++d) logs[i] += kernels_[d].log_density(i, point[d]);
    most = std::max(most, logs[i]);
  }
  if (std::isinf(most)) return most;
  double sum = 0;
  for (const double log : logs) sum += std::exp(log - most);
  return most + std::log(sum);
}

Coordinates Parzen::draw(CounterRng& rng) const {
  const size_t component = pick(weights_, rng.uniform());
  Coordinates point;
  for (const auto& kernels : kernels_) point.push_back(kernels.draw(component, rng));
  return point;
}

}  // namespace tare::search
