// Resizes a plane of an image and scales its values, without tensors. Internal.
#pragma once

#include <cstdint>
#include <vector>

#include "tare/transform/resample.h"
#include "tare/transform/steps.h"

namespace tare {

/// Maps the values of a channel: (value - subtract) / divide.
struct Scaling {
  float subtract = 0, divide = 1;
  float operator()(float v) const { return (v - subtract) / divide; }
};

/// Returns the scaling of each channel. `normalise` has one mean for each channel, or one for all;
/// null: the images are not normalised. `bytes`: they are uint8, and become values in [0, 1]
/// before.
[[nodiscard]] std::vector<Scaling> scalings(const Normalise* normalise, int64_t channels,
                                            bool bytes);

/// Scales `count` values of type uint8_t or float. Is a function of its own, with a count and no
/// other index, so that the compiler vectorises it.
template <class T>
[[gnu::noinline]] void scale_row(const T* in, float* out, int64_t count, Scaling scaling);

/// Gives the sources of the pixels of a resized side without antialiasing.
struct Axis {
  std::vector<int64_t> low, high;  // -1: padding
  std::vector<float> weight;       // of high

  Axis(int64_t in, int64_t out) : Axis(Side{.in = in, .scaled = out, .out = out}) {}
  explicit Axis(const Side& side);
};

/// Resizes planes as a Resize says.
class Resizer {
 public:
  /// Prepares for planes [height, width].
  Resizer(const Resize& resize, int64_t height, int64_t width);
  /// Resizes and scales a plane of uint8_t or float, whose rows have `in_width` values, to `out`,
  /// [Resize::height, Resize::width]. Thread-safe.
  template <class T>
  void run(const T* in, float* out, int64_t in_width, Scaling scaling) const;

 private:
  bool round_;
  std::vector<Axis> axes_;       // of a resize without antialiasing: rows, columns
  std::vector<Filter> filters_;  // of one with it
};

}  // namespace tare
