// The operations of RandAugment. Internal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tare/transform/colour_ops.h"

namespace tare {

/// Gives the point of the input under an output pixel, both counted from the centre of the picture:
/// the input's x is xx * x + xy * y + x0, and its y is yx * x + yy * y + y0.
struct Warp {
  float xx = 1, xy = 0, x0 = 0, yx = 0, yy = 1, y0 = 0;
};

/// Is one of the operations with its strength for pictures of a size.
struct Operation {
  std::string name{};     ///< one of operation_names()
  float magnitude = 0;    ///< in the unit of the operation; its sign is drawn where `has_sign`
  bool has_sign = false;  ///< whether it has a direction
};

/// Returns the names of the 14 operations, in torchvision's order: identity, shear_x, shear_y,
/// translate_x, translate_y, rotate, brightness, colour, contrast, sharpness, posterise, solarise,
/// auto_contrast, equalise.
[[nodiscard]] const std::vector<std::string>& operation_names();
/// Returns an operation with the strength of a magnitude in [0, levels), as torchvision's
/// RandAugment has it. `index`: of operation_names().
[[nodiscard]] Operation operation_of(size_t index, int64_t magnitude, int64_t levels,
                                     int64_t height, int64_t width);
/// Returns the warp of an operation that moves pixels; the identity of one that does not.
[[nodiscard]] Warp warp_of(const Operation& operation, int64_t height, int64_t width);
/// Changes the colours of a picture; does nothing for an operation that moves pixels.
void apply_colours(const Operation& operation, Planes<uint8_t> picture);
/// Moves the pixels of a plane: each gets the nearest of the input, or `fill` from outside of it.
template <class T>
void warp_plane(const T* in, T* out, int64_t height, int64_t width, const Warp& warp, T fill);

}  // namespace tare
