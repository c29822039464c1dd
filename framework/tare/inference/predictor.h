// Predictor: a bundle, ready to answer.
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
  std::string device =
      "cpu";  ///< cpu | cuda | cuda:N. CUDA must have been made available first (tare::init())
};

/// One class and how sure the model is of it.
struct Prediction {
  std::string label{};     ///< of the bundle; the index as text where it has none
  int64_t index = 0;       ///< of the class
  double probability = 0;  ///< the output after the bundle's activation
};

/// A model of a bundle with its transforms and labels. On the CPU the weights stay in the mapped
/// file: they cost no allocation and several processes share them (ledger category `mapped`);
/// building the module takes their size for a moment. On another device they are copied. Not
/// thread-safe; predictions do not change it.
class Predictor final : public Accountable {
 public:
  /// Opens and verifies the bundle (see open_bundle) and builds its model from the registry. Throws
  /// IoError, FormatError, ConfigError for a model or a device that is not there.
  explicit Predictor(const std::filesystem::path& path, const PredictorOptions& options = {});
  /// The same for a model that is not in the registry; its weights are replaced.
  Predictor(const std::filesystem::path& path, Model model, const PredictorOptions& options = {});
  explicit Predictor(Bundle bundle, const PredictorOptions& options = {});

  /// Predictions for a batch on the host: float32 [batch, classes], or whatever the model gives, on
  /// the host, after the activation. `images`: [batch, channels, height, width], uint8 or float32
  /// in [0, 1] of any size that the transforms bring to sample_shape(); for models that take no
  /// images [batch, features], float32. Outside of autograd. Waits for the device. Throws
  /// ShapeError.
  [[nodiscard]] at::Tensor predict(const at::Tensor& images);

  /// The classes of one PNG file, most probable first: `top` of them or as many as there are.
  /// Converted to the number of channels that the model takes. Throws IoError, FormatError for a
  /// file that is no such image.
  [[nodiscard]] std::vector<Prediction> classify(const std::filesystem::path& image,
                                                 int64_t top = 1);

  [[nodiscard]] const BundleManifest& manifest() const { return bundle_.manifest(); }
  [[nodiscard]] const std::vector<int64_t>& sample_shape() const { return manifest().sample_shape; }
  [[nodiscard]] c10::Device device() const { return device_; }

  // ---- Accountable
  [[nodiscard]] std::string account_name() const override { return "predictor"; }
  [[nodiscard]] Ledger ledger() const override;
  /// A Predictor keeps nothing but its weights: frees nothing.
  PurgeReport purge_account() override;

 private:
  Predictor(Bundle bundle, Model model, const PredictorOptions& options);
  [[nodiscard]] at::Tensor transformed(const at::Tensor& images) const;

  Bundle bundle_;
  Model model_;
  c10::Device device_;
};

}  // namespace tare
