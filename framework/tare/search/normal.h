// The standard normal distribution on an interval, in logarithms: exact far out in the tails, where
// its probabilities are below the smallest double.
#pragma once

namespace tare::search {

/// Returns the log of the probability below x.
[[nodiscard]] double log_normal_cdf(double x);

/// Returns the log of the probability of [a, b], a <= b; -inf where they are equal.
[[nodiscard]] double log_normal_mass(double a, double b);

/// Returns the x in [a, b] with the share q, in [0, 1], of the interval's probability below it: the
/// inverse of the truncated distribution's function. For a < b.
[[nodiscard]] double truncated_normal_quantile(double q, double a, double b);

}  // namespace tare::search
