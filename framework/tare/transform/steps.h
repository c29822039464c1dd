// The options of the transforms that are values: resize, normalise, flip, shift and affine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tare/config/field.h"

namespace tare {

/// Resizes bilinearly. With `antialias` each pixel is a mean of all that it covers, as by Pillow's
/// Image.resize(..., BILINEAR): to within 1/255, and exactly with `round` for uint8 images.
/// Without, it is a mean of the nearest four, as by torch's interpolate(..., align_corners=False).
///
/// `fit` says what becomes of an image of another aspect ratio; the pixels are those of the whole
/// image scaled to the size below:
/// - `stretch`: the image is scaled to height x width, whatever its aspect ratio.
/// - `crop`: the image is scaled until it just covers height x width, and its middle is kept. One
///   side has its size exactly, the other is rounded down; half of what is left over, rounded
///   half to even, is cut off at the top or the left. For a square that is torchvision's
///   Resize(size) and CenterCrop(size).
/// - `pad`: the image is scaled until it just fits into height x width, and lies in the middle of
///   zeros (black, before a Normalise). One side has its size exactly. The other (at least 1) and
///   the margin at the top or the left are rounded half to even, as by Pillow's ImageOps.pad(). In
///   a target of int64 classes the margin is -100, which the losses ignore.
struct Resize {
  int64_t height = 0;  ///< >= 1
  int64_t width = 0;   ///< >= 1
  /// Rounds the result to the 256 levels of a uint8 image, as a reader does that resizes the files
  /// it reads (image_folder) and keeps them as bytes.
  bool round = false;
  bool antialias = true;  ///< false: an image that shrinks loses fine lines, and shows patterns
  std::string fit = "stretch";  ///< stretch | crop | pad, see above
  bool operator==(const Resize&) const = default;
};
/// Computes (value - mean) / std per channel; the statistics are those of images in [0, 1].
struct Normalise {
  std::vector<double> mean{};  ///< one for each channel, or one for all
  std::vector<double> std{};   ///< as many as `mean`, > 0
  bool operator==(const Normalise&) const = default;
};
/// Mirrors left and right with the given probability. Random.
struct Flip {
  double probability = 0.5;  ///< in [0, 1]
  bool operator==(const Flip&) const = default;
};
/// Moves by a whole number of pixels, uniform in [-pixels, pixels] in each direction. Random.
struct Shift {
  int64_t pixels = 2;            ///< in [0, 1024], and below the image's height and width
  std::string padding = "zero";  ///< of what moves in: zero | edge (repeats the border)
  bool operator==(const Shift&) const = default;
};
/// Rotates by an angle uniform in [-degrees, degrees] and scales by a factor uniform in [1 - zoom,
/// 1 + zoom] about the image's centre; bilinear, padded with zeros. Random.
struct Affine {
  double degrees = 10;  ///< in [0, 180]
  double zoom = 0.1;    ///< in [0, 0.9]
  bool operator==(const Affine&) const = default;
};

void visit_fields(auto& visit, Resize& r) {
  visit("height", r.height, config::between(1, 16384));
  visit("width", r.width, config::between(1, 16384));
  visit("round", r.round);
  visit("antialias", r.antialias);
  visit("fit", r.fit, config::one_of({"stretch", "crop", "pad"}));
}
void visit_fields(auto& visit, Normalise& n) {
  visit("mean", n.mean);
  visit("std", n.std);
}
void visit_fields(auto& visit, Flip& f) {
  visit("probability", f.probability, config::between(0, 1));
}
void visit_fields(auto& visit, Shift& s) {
  visit("pixels", s.pixels, config::between(0, 1024));
  visit("padding", s.padding, config::one_of({"zero", "edge"}));
}
void visit_fields(auto& visit, Affine& a) {
  visit("degrees", a.degrees, config::between(0, 180));
  visit("zoom", a.zoom, config::between(0, 0.9));
}

}  // namespace tare
