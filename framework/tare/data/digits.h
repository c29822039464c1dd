// Generated digits: a training set without a download, equal to the bit on every machine.
//
// A digit is a few strokes (lines and Bezier curves, control points written for this file). Each
// sample varies its control points, scale, slant, rotation and place, draws with a round pen of
// varying width, and adds noise. Only integer operations and single-precision + - * / sqrt in a
// fixed order are used, so that IEEE 754 determines every bit.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "tare/config/field.h"
#include "tare/data/dataset.h"

namespace tare {

/// Describes a set of generated digits by its number of images, their size and style, and a seed.
struct GeneratedDigits {
  int64_t count = 10000;          ///< images, in [1, 10,000,000], with equal shares of the classes
  int64_t size = 28;              ///< height and width in pixels, in [8, 1024]
  std::string style = "printed";  ///< printed: even and upright | written: slanted and uneven
  int64_t seed = 0;               ///< sample i depends on (seed, style, size, i) only
  bool operator==(const GeneratedDigits&) const = default;
};
void visit_fields(auto& visit, GeneratedDigits& g) {
  visit("count", g.count, config::between(1, 10'000'000));
  visit("size", g.size, config::between(8, 1024));
  visit("style", g.style, config::one_of({"printed", "written"}));
  visit("seed", g.seed, config::at_least(0));
}

/// Holds pictures of digits and their classes.
struct DigitImages {
  at::Tensor images;  ///< uint8 [count, 1, size, size], bright strokes on black as in MNIST
  at::Tensor labels;  ///< int64 [count]; each ten samples hold every digit once, in a seeded order
};

/// Generates the images, in about 30 us each at 28 pixels on one core. Throws ConfigError for a
/// field out of its range.
[[nodiscard]] DigitImages generate_digits(const GeneratedDigits& options = {});

/// Makes a data set of generated digits with labels "0" to "9".
[[nodiscard]] DatasetPtr generated_digits(const GeneratedDigits& options = {});

}  // namespace tare
