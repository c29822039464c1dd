// Finds and compares the levels of arrays.
#include "tare/data/levels.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <variant>

#include "tare/config/scalar.h"

namespace tare {
namespace {

template <class T>
std::optional<Levels> measured(const at::Tensor& input) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  T least = kInfinity, most = -kInfinity;
  const T* value = input.const_data_ptr<T>();
  for (int64_t i = 0; i < input.numel(); ++i) {
    if (!std::isfinite(value[i])) continue;
    least = std::min(least, value[i]);
    most = std::max(most, value[i]);
  }
  if (least > most) return std::nullopt;
  return Levels{.least = static_cast<double>(least), .most = static_cast<double>(most)};
}

std::string text_of(const Levels& levels) {
  return config::number_text(levels.least) + " to " + config::number_text(levels.most);
}

/// Returns six significant digits, which name a level of float32.
Levels rounded(const Levels& levels) {
  const auto digits = [](double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return std::strtod(text, nullptr);
  };
  return {.least = digits(levels.least), .most = digits(levels.most)};
}

}  // namespace

std::optional<Levels> levels_of(const at::Tensor& input) {
  if (input.dim() < 3) return std::nullopt;
  if (input.scalar_type() == at::kByte) return Levels{.least = 0, .most = 1};
  if (input.scalar_type() == at::kFloat) return measured<float>(input.contiguous());
  if (input.scalar_type() == at::kDouble) return measured<double>(input.contiguous());
  return std::nullopt;
}

std::string normalise_warning(const Levels& levels, const Transforms& transforms) {
  constexpr double kLeast = 0.1, kMost = 100;  // deviations that the levels extend over
  const double span = levels.most - levels.least;
  if (!(span > 0)) return {};
  for (const Transform& step : transforms.steps()) {
    const auto* normalise = std::get_if<Normalise>(&step);
    if (!normalise) continue;
    const auto refers_to_others = [&](double mean) {
      return mean < levels.least - span || mean > levels.most + span;
    };
    const auto is_of_others = [&](double std) { return span < kLeast * std || span > kMost * std; };
    const auto mean = std::ranges::find_if(normalise->mean, refers_to_others);
    const auto std = std::ranges::find_if(normalise->std, is_of_others);
    if (mean == normalise->mean.end() && std == normalise->std.end()) continue;
    const bool of_mean = mean != normalise->mean.end();
    return std::string("has a ") + (of_mean ? "mean of " : "std of ") +
           config::number_text(of_mean ? *mean : *std) + ", and the levels of the data are " +
           text_of(rounded(levels)) +
           ": give mean and std of these levels, such as those of the 256 levels divided by 255";
  }
  return {};
}

std::string levels_warning(const Levels& now, const Levels& then) {
  constexpr double kSmallest = 0.01;  // share of the range of the training
  const double span = then.most - then.least, own = now.most - now.least;
  if (!(span > 0)) return {};
  const bool beyond = now.most > then.most + span || now.least < then.least - span;
  const bool tiny = own > 0 && own < kSmallest * span;
  if (!beyond && !tiny) return {};
  return "has numbers from " + text_of(rounded(now)) + ", and those of the training were from " +
         text_of(rounded(then)) +
         ": the predictions are wrong unless both have one unit; save the numbers in the unit of "
         "the training" +
         (then == Levels{.least = 0, .most = 1} && now.least >= 0 && now.most <= 255
              ? ", such as (array / 255).astype(numpy.float32)"
              : "");
}

}  // namespace tare
