// Predictor: predicts from a bundle.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tare/inference/bundle.h"
#include "tare/memory/accountable.h"

namespace tare {

struct PredictorOptions {
  std::string device = "cpu";  ///< cpu | cuda | cuda:N; CUDA only after tare::init()
};

/// One class and its probability.
struct Prediction {
  std::string label{};     ///< of the class; its index as text if the bundle has no labels
  int64_t index = 0;       ///< of the class
  double probability = 0;  ///< the output after the bundle's activation
};

/// A bundle's model with its transforms and labels. On the CPU the weights stay in the mapped file:
/// they cost no allocation, and processes share them (ledger category `mapped`); only construction
/// allocates their size for a moment. On another device they are copied. After an exception from a
/// prediction it is unchanged. Not thread-safe.
class Predictor final : public Accountable {
 public:
  /// Opens and verifies the bundle (see open_bundle) and builds its model by the registry. Throws
  /// IoError, FormatError, ConfigError for an unknown model or device name, DeviceError for a
  /// device that does not exist.
  explicit Predictor(const std::filesystem::path& path, const PredictorOptions& options = {});
  /// The same with a model that is not in the registry; its weights are overwritten.
  Predictor(const std::filesystem::path& path, Model model, const PredictorOptions& options = {});
  explicit Predictor(const Bundle& bundle, const PredictorOptions& options = {});

  /// Predicts a batch on the host. `images`: [batch, channels, height, width], uint8 or float32 in
  /// [0, 1], of any size that the transforms bring to sample_shape(); for models of features
  /// float32 [batch, features]. Returns float32 [batch, classes], or the model's own output shape,
  /// on the host, after the activation, without autograd. Waits for the device. Throws ShapeError.
  [[nodiscard]] at::Tensor predict(const at::Tensor& images);

  /// The `top` most probable classes of one PNG file, or all if there are fewer. The image is
  /// converted to the model's number of channels. Throws IoError, FormatError for an invalid PNG.
  [[nodiscard]] std::vector<Prediction> classify(const std::filesystem::path& image,
                                                 int64_t top = 1);

  [[nodiscard]] const BundleManifest& manifest() const { return bundle_.manifest(); }
  [[nodiscard]] const std::vector<int64_t>& sample_shape() const { return manifest().sample_shape; }
  [[nodiscard]] c10::Device device() const { return device_; }

  // ---- Accountable
  [[nodiscard]] std::string account_name() const override { return "predictor"; }
  [[nodiscard]] Ledger ledger() const override;
  /// Frees nothing: a Predictor keeps nothing but its weights.
  PurgeReport purge_account(const PurgeOptions& options) override;

 private:
  Predictor(Bundle bundle, Model model, const PredictorOptions& options);
  [[nodiscard]] at::Tensor transformed(const at::Tensor& images) const;

  Bundle bundle_;
  Model model_;
  c10::Device device_;
};

}  // namespace tare
