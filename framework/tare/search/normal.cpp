// Evaluates the standard normal distribution on an interval.
#include "tare/search/normal.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tare::search {
namespace {

double tail(double x) { return 0.5 * std::erfc(x / std::numbers::sqrt2); }  // above x

/// Returns log(exp(a) + exp(b)).
double log_sum(double a, double b) {
  const double most = std::max(a, b);
  return std::isinf(most) ? most : most + std::log1p(std::exp(std::min(a, b) - most));
}

/// Returns log(exp(a) - exp(b)), a >= b.
double log_difference(double a, double b) { return a + std::log(-std::expm1(b - a)); }

}  // namespace

double log_normal_cdf(double x) {
  if (x > 0) return std::log1p(-tail(x));
  if (x > -30) return std::log(tail(-x));
  // Abramowitz and Stegun 26.2.12; at 30 its seventh term is below 1e-16.
  double term = 1, sum = 1;
  for (int i = 1; i <= 7; ++i) sum += term *= -(2 * i - 1) / (x * x);
  return -0.5 * x * x - std::log(-x) - 0.5 * std::log(2 * std::numbers::pi) + std::log(sum);
}

double log_normal_mass(double a, double b) {
  if (b <= 0) return log_difference(log_normal_cdf(b), log_normal_cdf(a));
  if (a > 0) return log_normal_mass(-b, -a);
  return std::log1p(-tail(-a) - tail(b));
}

double truncated_normal_quantile(double q, double a, double b) {
  if (a > 0) return -truncated_normal_quantile(1 - q, -b, -a);  // the left tail is the exact one
  const double below = log_sum(log_normal_cdf(a), std::log(q) + log_normal_mass(a, b));
  double low = a, high = b, middle = low + (high - low) / 2;
  while (low < middle && middle < high) {
    (log_normal_cdf(middle) < below ? low : high) = middle;
    middle = low + (high - low) / 2;
  }
  return middle;
}

}  // namespace tare::search
