// Compares the rounding of float32 with the deviation of numbers.
#include "tare/data/float_spread.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>

namespace tare {
namespace {

constexpr int kAllDigits = 15;  // which numbers far from 0 may differ in

std::string text_of(double value, int digits = 6) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

}  // namespace

std::string spread_problem(std::span<const double> numbers) {
  constexpr double kMostOfDeviation = 0.01;
  double count = 0, mean = 0, squares = 0, rounding = 0;
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (const double value : numbers) {
    if (std::isnan(value)) continue;
    const double step = value - mean;  // Welford's mean and sum of squares
    mean += step / ++count;
    squares += step * (value - mean);
    const double error = value - static_cast<double>(static_cast<float>(value));
    rounding += error * error;
    least = std::fmin(least, value);
    most = std::fmax(most, value);
  }
  if (!(most > least) || rounding <= kMostOfDeviation * kMostOfDeviation * squares) return {};
  const auto largest = static_cast<float>(std::fmax(std::abs(least), std::abs(most)));
  const double gap =
      static_cast<double>(std::nextafter(largest, std::numeric_limits<float>::infinity())) -
      static_cast<double>(largest);
  return "has numbers from " + text_of(least, kAllDigits) + " to " + text_of(most, kAllDigits) +
         " with a deviation of " + text_of(std::sqrt(squares / count)) +
         ", and float32 holds such numbers in steps of " + text_of(gap) +
         " only: subtract a constant such as " + text_of(std::floor(least), kAllDigits) +
         " from all of them";
}

}  // namespace tare
