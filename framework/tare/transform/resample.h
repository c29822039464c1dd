// The antialiased resize of an image plane. Internal.
//
// Each output pixel is a mean of the input pixels under a triangle, whose half width is the ratio
// of the sides, or one input pixel where the image grows. Both sides are filtered one after the
// other, the rows first. That is the bilinear resize of Pillow (Image.resize, BILINEAR) and of
// torchvision with antialias.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tare {

/// Holds the input pixels of each pixel of a resized side, with their weights, which sum to one.
class Filter {
 public:
  /// Describes the change of a side of `in` pixels to `out`, both >= 1.
  Filter(int64_t in, int64_t out);
  [[nodiscard]] int64_t in() const { return in_; }    ///< returns the pixels of the input's side
  [[nodiscard]] int64_t out() const { return out_; }  ///< returns the pixels of the output's side
  /// Returns the first input pixel of an output pixel, and how many there are.
  [[nodiscard]] int64_t first(int64_t pixel) const { return first_[static_cast<size_t>(pixel)]; }
  [[nodiscard]] int64_t count(int64_t pixel) const { return count_[static_cast<size_t>(pixel)]; }
  /// Returns the weights of an output pixel's input pixels.
  [[nodiscard]] const float* weights(int64_t pixel) const { return &weights_[at(pixel)]; }
  /// Returns the weights in units of 2^-22, rounded, as Pillow has them for images of bytes.
  [[nodiscard]] const int32_t* whole_weights(int64_t pixel) const { return &whole_[at(pixel)]; }

 private:
  [[nodiscard]] size_t at(int64_t pixel) const { return static_cast<size_t>(pixel * stride_); }

  int64_t in_, out_, stride_;
  std::vector<int64_t> first_, count_;
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
