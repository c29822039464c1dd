// Boxes of pictures, drawn at random. Internal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tare {

/// Is a part of a picture; it may reach beyond the picture's sides.
struct Box {
  int64_t top = 0, left = 0;      ///< its first pixel
  int64_t height = 0, width = 0;  ///< its size in pixels
};

/// Draws a box inside a picture as torchvision's RandomResizedCrop.get_params() does: a share of
/// the area uniform in `scale`, and width / height of a logarithm uniform in that of `ratio`. After
/// ten boxes that do not fit it takes the largest in the centre that has the ratio.
[[nodiscard]] Box draw_box(uint64_t seed, int64_t height, int64_t width,
                           const std::vector<double>& scale, const std::vector<double>& ratio);

/// Throws ConfigError unless `bounds` are [least, most], the most not above `most`.
void check_bounds(const std::string& name, const char* field, const std::vector<double>& bounds,
                  double most);

}  // namespace tare
