// The stages of a pipeline: each is one pass over the images. Internal.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tare/transform/transform.h"

namespace tare {

/// Is one pass: moves pixels, turns them or resizes, then (v - subtract) / divide per channel.
struct Stage {
  struct Step {
    size_t place = 0;  // in the list of transforms: part of the step's seed
    const Transform* transform = nullptr;
  };
  std::vector<Step> moves;
  bool shifts = false;
  Step turn{};
  const Resize* resize = nullptr;
  const Normalise* normalise = nullptr;
  Step added{};  // is alone in its stage
};

/// Sets out(y, x) = in(y - down, x - right), where `in` is mirrored first if flip.
struct Move {
  bool flip = false, edge = false;
  int64_t down = 0, right = 0;
};

/// Gives the point of the input under an output pixel: a rotation and a zoom about the centre.
struct Turn {
  float cos = 1, sin = 0;
};

/// Cuts a pipeline into stages. `steps` outlive the stages.
[[nodiscard]] std::vector<Stage> stages_of(const std::vector<Transform>& steps);

/// Draws what a stage's random steps do to the sample with this seed.
[[nodiscard]] Move draw_move(const Stage& stage, uint64_t sample_seed);
[[nodiscard]] Turn draw_turn(const Stage& stage, uint64_t sample_seed);
/// Returns the seeds of a stage's added transform; none if it is not random.
[[nodiscard]] std::vector<uint64_t> seeds_of_added(const Stage& stage,
                                                   std::span<const uint64_t> sample_seeds);

/// Interpolates between pixels, bilinearly; what lies outside the input counts as zero.
template <class T>
float sample_between(const T* in, int64_t height, int64_t width, float y, float x) {
  const float top = std::floor(y), left = std::floor(x);
  const float down = y - top, right = x - left;
  const auto at = [&](int64_t row, int64_t column) {
    const bool inside = row >= 0 && row < height && column >= 0 && column < width;
    return inside ? static_cast<float>(in[row * width + column]) : 0.0F;
  };
  const auto r = static_cast<int64_t>(top), c = static_cast<int64_t>(left);
  return (1 - down) * ((1 - right) * at(r, c) + right * at(r, c + 1)) +
         down * ((1 - right) * at(r + 1, c) + right * at(r + 1, c + 1));
}

}  // namespace tare
