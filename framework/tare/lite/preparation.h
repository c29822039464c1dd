// The transforms of a bundle, from a picture to what the model takes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "tare/lite/bundle.h"
#include "tare/lite/layers.h"
#include "tare/transform/picture.h"
#include "tare/transform/steps.h"

namespace tare::lite {

/// Holds the sides of a picture in pixels.
struct PictureSize {
  int64_t height = 0;  ///< pixels
  int64_t width = 0;   ///< pixels
};

/// Holds a picture as its file has it, in planes.
struct BytePlanes {
  int64_t channels = 0;          ///< planes
  int64_t height = 0;            ///< pixels
  int64_t width = 0;             ///< pixels
  std::vector<uint8_t> bytes{};  ///< [channels, height, width]
};

/// Applies resize and normalise as tare::Transforms does, to the bit. A value; thread-safe.
class Preparation {
 public:
  /// Reads the transforms of a bundle. Throws FormatError for what is no list of transforms,
  /// Unsupported for one that is neither resize nor normalise.
  explicit Preparation(const Bundle& bundle);

  /// Whether there are no transforms.
  [[nodiscard]] bool empty() const { return empty_; }
  /// Returns the size to which the transforms bring a picture.
  [[nodiscard]] PictureSize size_of(PictureSize picture) const;
  /// Returns a picture as bytes [channels, height, width], which is resized where the transforms do
  /// not bring it to the shape of a sample. Throws ShapeError where the picture has other channels
  /// than the samples.
  [[nodiscard]] BytePlanes fitted(const Picture& picture) const;
  /// Transforms a picture of these sizes, of `T` uint8_t or float in [0, 1].
  template <class T>
  [[nodiscard]] Planes operator()(const T* planes, int64_t channels, int64_t height,
                                  int64_t width) const;

 private:
  /// Is one pass over the values: a resize, then a scaling. The first of all makes bytes to [0, 1].
  struct Pass {
    std::optional<Resize> resize{};
    std::optional<Normalise> normalise{};
  };

  std::vector<Pass> passes_ = std::vector<Pass>(1);
  bool empty_ = true;
  std::vector<int64_t> sample_shape_;
  bool antialias_;
};

}  // namespace tare::lite
