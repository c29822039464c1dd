// Predictions by a bundle without LibTorch: multi-layer perceptrons, ResNets and GPT on the host.
//
// LibTorch takes a fifth of a second and 110 MiB before it computes anything. This engine has
// kernels of its own for a few families of models, and starts in milliseconds. Its outputs are
// within 1e-5 of those of tare::Predictor, relative to the largest number of an output; they are
// not equal to the bit, because sums have another order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tare/lite/bundle.h"
#include "tare/lite/network.h"
#include "tare/lite/preparation.h"
#include "tare/transform/picture.h"

namespace tare::lite {

/// Sets how a Model computes.
struct ModelOptions {
  int64_t threads = 1;               ///< that share the work of a layer, 1 to 4096
  const Kernels* kernels = nullptr;  ///< null: best_kernels()
};

/// Predicts with a bundle's model, transforms and labels. The weights stay in the mapped file, and
/// processes share them; opening allocates nothing of their size, also where they are rounded. Owns
/// threads. After an exception it is unchanged. Not thread-safe.
class Model {
 public:
  /// Opens and verifies a bundle. Throws IoError, FormatError; ConfigError for threads out of
  /// range; Unsupported where only LibTorch can predict: another family, several inputs, rows of a
  /// table, other transforms than resize and normalise.
  explicit Model(const std::filesystem::path& path, const ModelOptions& options = {});

  /// Predicts a batch, as tare::Predictor::predict() takes it: pictures [batch, channels, height,
  /// width] of bytes or numbers in [0, 1], of any size that the transforms bring to that of a
  /// sample; features [batch, ...]; tokens [batch, length]. Returns the model's output after the
  /// activation, such as [batch, classes]. Throws ShapeError, ConfigError for a token out of range.
  [[nodiscard]] Output predict(const Input& input);
  /// Returns a picture in planes of bytes, as predict() takes it: it is resized where the
  /// transforms do not bring it to the shape of a sample. Throws ShapeError for a model that takes
  /// no pictures.
  [[nodiscard]] BytePlanes picture_input(const Picture& picture) const;

  [[nodiscard]] const Bundle& bundle() const { return bundle_; }                 ///< the open file
  [[nodiscard]] const Manifest& manifest() const { return bundle_.manifest(); }  ///< describes it
  /// Whether samples are pictures, [1 or 3, height, width] of float32 or uint8.
  [[nodiscard]] bool takes_pictures() const;
  /// Whether samples are whole numbers of any length.
  [[nodiscard]] bool takes_tokens() const;
  /// Whether outputs are scores of classes, and not values.
  [[nodiscard]] bool gives_classes() const;

 private:
  /// Throws ShapeError for a shape behind the transforms that is not that of a batch.
  void check(const std::vector<int64_t>& shape) const;
  /// Returns a batch of pictures behind the transforms, and sets its shape.
  [[nodiscard]] std::vector<float> transformed(const Input& input,
                                               std::vector<int64_t>& shape) const;

  Bundle bundle_;
  Preparation preparation_;
  Engine engine_;
  std::unique_ptr<const Network> network_;
};

}  // namespace tare::lite
