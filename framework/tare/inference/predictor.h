// Predictor: predicts from a bundle, or with the model of a Learner.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tare/inference/bundle.h"
#include "tare/inference/prediction.h"
#include "tare/memory/accountable.h"

namespace tare {

/// Sets the device of a Predictor, and optionally its forward.
struct PredictorOptions {
  std::string device = "cpu";  ///< cpu | cuda | cuda:N; CUDA only after tare::init()
  /// Replaces the model's forward, as Task::predict does in training. `batch`: the inputs on the
  /// device, after the transforms, without targets.
  std::function<Outputs(Model& model, const Batch& batch)> forward{};
};

/// Predicts with a bundle's model, transforms and labels. On the CPU the weights stay in the mapped
/// file: they cost no allocation, and processes share them (ledger category `mapped`); only
/// construction allocates their size for a moment. On another device they are copied. After an
/// exception from a prediction it is unchanged. Not thread-safe.
///
/// A Predictor of a Learner, see Learner::predictor(), has the Learner's weights as they are at the
/// time of a prediction: it copies none of them, and owns none.
///
/// Weights of a bundle that stores them as fp8 stay so, on every device: those of a block are
/// dequantised to float32 while the block computes, those outside of blocks during the forward.
class Predictor final : public Accountable {
 public:
  /// Opens and verifies the bundle (see open_bundle) and builds its model by the registry. Throws
  /// IoError, FormatError, ConfigError for an unknown model or device name, DeviceError for a
  /// device that does not exist, StateError for a model without a forward and no
  /// PredictorOptions::forward.
  explicit Predictor(const std::filesystem::path& path, const PredictorOptions& options = {});
  /// Makes a predictor with a model that is not in the registry; its weights are overwritten.
  Predictor(const std::filesystem::path& path, Model model, const PredictorOptions& options = {});
  /// Builds the model of a bundle that is open already; throws as for a path.
  explicit Predictor(const Bundle& bundle, const PredictorOptions& options = {});
  /// Makes a predictor with a model that something else owns and may train, on `device`; it is set
  /// to evaluation mode during a prediction. `manifest` describes the model's inputs and outputs.
  /// Once the model is gone, predict() throws StateError. Throws as for a path.
  Predictor(BundleManifest manifest, std::weak_ptr<Model> model, c10::Device device,
            std::function<Outputs(Model& model, const Batch& batch)> forward = {});

  /// Predicts a batch on the host, [batch, ...], which is one of
  /// - images [batch, channels, height, width], uint8 or float32 in [0, 1], of any size that the
  ///   transforms bring to sample_shape();
  /// - features [batch, ...] of the dtype of BundleManifest::input, of any size in the dimensions
  ///   of BundleManifest::any_size;
  /// - tokens [batch, ..., length] of that dtype, of any length that the model takes; those of a
  ///   model of the registry in [0, classes).
  /// Returns float32 [batch, classes], or the model's own output shape, on the host, after the
  /// activation, without autograd. Waits for the device. Throws ShapeError; ConfigError for a token
  /// out of range.
  [[nodiscard]] at::Tensor predict(const at::Tensor& inputs);
  /// Predicts for a model of several inputs or outputs: the inputs of `batch`, each as above, in
  /// the order of training; their names are not compared. Returns all outputs, each on the host
  /// after the activation. Throws ShapeError for another number of inputs.
  [[nodiscard]] Outputs predict(const Batch& batch);
  /// Returns a picture, uint8 [channels, height, width] of any size, as predict() takes it, [1,
  /// ...]: where the transforms do not bring it to sample_shape(), it is resized. Throws StateError
  /// for a model that takes no pictures.
  [[nodiscard]] at::Tensor picture_input(const at::Tensor& pixels) const;
  /// Predicts one picture as picture_input() takes it. Returns [1, ...]. Throws as both.
  [[nodiscard]] at::Tensor predict_picture(const at::Tensor& pixels);

  /// Returns the `top` most probable classes of one PNG, JPEG or WebP file, or all if there are
  /// fewer. The image is converted to the model's number of channels. Throws IoError, FormatError
  /// for an invalid file, StateError for a model that takes no pictures or gives no class scores.
  [[nodiscard]] std::vector<Prediction> classify(const std::filesystem::path& image,
                                                 int64_t top = 1);
  /// Returns the `top` most probable classes of a prediction for one sample, [1, classes]; of a
  /// language model's [1, classes, length] those of the token that follows the last. Throws
  /// StateError for other shapes.
  [[nodiscard]] std::vector<Prediction> classes(const at::Tensor& prediction,
                                                int64_t top = 1) const;
  /// Whether classes() can name the classes of this prediction and they mean something: there are
  /// probabilities or labels.
  [[nodiscard]] bool has_classes(const at::Tensor& prediction) const;

  /// Returns what the bundle says of itself.
  [[nodiscard]] const BundleManifest& manifest() const { return manifest_; }
  /// Returns the shape of one input, without the batch: [channels, height, width], or [...].
  [[nodiscard]] const std::vector<int64_t>& sample_shape() const { return manifest().sample_shape; }
  /// Returns which samples the model takes: pictures, features or tokens.
  [[nodiscard]] SampleKind sample_kind() const;
  [[nodiscard]] c10::Device device() const { return device_; }  ///< returns where the model is

  // ---- Accountable
  [[nodiscard]] std::string account_name() const override { return "predictor"; }  ///< "predictor"
  /// Returns the weights, by name; nothing for weights that something else owns.
  [[nodiscard]] Ledger ledger() const override;
  /// Frees nothing: a Predictor keeps nothing but its weights.
  PurgeReport purge_account(const PurgeOptions& options) override;

 private:
  Predictor(const Bundle& bundle, Model model, const PredictorOptions& options);
  void check_forward(const Model& model) const;
  [[nodiscard]] std::shared_ptr<Model> the_model(const char* call) const;
  [[nodiscard]] at::Tensor transformed(const at::Tensor& inputs) const;
  [[nodiscard]] at::Tensor transformed(const at::Tensor& inputs, const BundleInput& as) const;
  [[nodiscard]] Batch transformed(const Batch& batch) const;
  void check_shape(const at::Tensor& input) const;
  void check_tokens(const at::Tensor& tokens) const;

  BundleManifest manifest_;
  std::shared_ptr<Model> own_;  // null: something else owns it
  std::weak_ptr<Model> model_;
  c10::Device device_;
  c10::ScalarType dtype_;
  std::function<Outputs(Model&, const Batch&)> forward_;
  int64_t vocabulary_ = 0;                // 0: unknown
  std::optional<c10::ScalarType> half_;   // of weights in 16 bits, which inputs are converted to
  std::shared_ptr<HeldWeights> outside_;  // fp8 weights outside of blocks; null: none
};

}  // namespace tare
