// The antialiased resize of an image plane. Internal.
//
// Each output pixel is a mean of the input pixels under a triangle, whose half width is the ratio
// of the sides, or one input pixel where the image grows. Both sides are filtered one after the
// other, the rows first. That is the bilinear resize of Pillow (Image.resize, BILINEAR) and of
// torchvision with antialias.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tare {

/// Says how a side is resized: its pixels are scaled to another number of them, of which the result
/// is a part, or all and padding around them.
struct Side {
  int64_t in = 1;      ///< pixels of the input
  int64_t scaled = 1;  ///< pixels of the input when it has been scaled
  int64_t out = 1;     ///< pixels of the result
  int64_t begin = 0;   ///< the scaled pixel that is the result's first; < 0: so much padding
  /// Returns the scaled pixel that is a pixel of the result; -1: that pixel is padding.
  [[nodiscard]] int64_t place(int64_t pixel) const {
    const int64_t at = begin + pixel;
    return at >= 0 && at < scaled ? at : -1;
  }
};
/// Describes both sides of a picture.
struct Sides {
  Side down{};    ///< the height
  Side across{};  ///< the width
};

/// Returns how a picture of this size is brought to another one by `fit`, see Resize::fit.
[[nodiscard]] Sides sides_of(const std::string& fit, int64_t height, int64_t width,
                             int64_t to_height, int64_t to_width);

/// Holds the input pixels of each pixel of a resized side, with their weights, which sum to one.
/// Each pixel has equally many, some with a weight of 0, so that a loop over them can be unrolled.
/// Padding has weights of 0 alone, and so becomes 0.
class Filter {
 public:
  /// Describes the change of a side of `in` pixels to `out`, both >= 1.
  Filter(int64_t in, int64_t out) : Filter(Side{.in = in, .scaled = out, .out = out}) {}
  explicit Filter(const Side& side);
  [[nodiscard]] int64_t in() const { return in_; }    ///< returns the pixels of the input's side
  [[nodiscard]] int64_t out() const { return out_; }  ///< returns the pixels of the output's side
  /// Returns how many input pixels an output pixel has.
  [[nodiscard]] int64_t taps() const { return taps_; }
  /// Returns the first input pixel of an output pixel; first() + taps() <= in().
  [[nodiscard]] int64_t first(int64_t pixel) const { return first_[static_cast<size_t>(pixel)]; }
  /// Returns the weights of an output pixel's input pixels, [taps()].
  [[nodiscard]] const float* weights(int64_t pixel) const { return &weights_[at(pixel)]; }
  /// Returns the weights in units of 2^-22, rounded, as Pillow has them for images of bytes.
  [[nodiscard]] const int32_t* whole_weights(int64_t pixel) const { return &whole_[at(pixel)]; }

 private:
  [[nodiscard]] size_t at(int64_t pixel) const { return static_cast<size_t>(pixel * taps_); }

  int64_t in_, out_, taps_ = 1;
  std::vector<int64_t> first_;
  std::vector<float> weights_;
  std::vector<int32_t> whole_;
};

/// Resizes a plane [down.in(), across.in()] of bytes, and rounds to bytes after each side, as
/// Pillow does. `out`: [down.out(), across.out()].
void resample_bytes(const uint8_t* in, uint8_t* out, const Filter& down, const Filter& across);
/// Resizes a plane without rounding.
void resample(const uint8_t* in, float* out, const Filter& down, const Filter& across);
void resample(const float* in, float* out, const Filter& down, const Filter& across);

}  // namespace tare
