// Networks: the families of models that the engine computes with.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tare/lite/bundle.h"
#include "tare/lite/layers.h"

namespace tare::lite {

/// Holds a batch as a model takes it; views of memory of the caller.
struct Input {
  std::vector<int64_t> shape{};     ///< [batch, ...]
  const float* numbers = nullptr;   ///< of pictures in [0, 1]; null: the input is another one
  const uint8_t* bytes = nullptr;   ///< of pictures, which become numbers in [0, 1]
  const int64_t* tokens = nullptr;  ///< of a language model
};

/// Holds what a model gives for a batch.
struct Output {
  std::vector<int64_t> shape{};  ///< [batch, classes, ...]
  std::vector<float> values{};   ///< of that shape
};

/// Is a model in evaluation mode; its weights are views of the bundle's.
class Network {
 public:
  virtual ~Network() = default;
  /// Computes the model's output before the activation. Throws ShapeError for a shape that the
  /// model does not take, ConfigError for a token out of range.
  [[nodiscard]] virtual Output forward(Engine& engine, const Input& input) const = 0;
};

/// Makes the bundle's model, of which the bundle must outlive it. Throws Unsupported for a model
/// that is none of mlp, resnet9, resnet18, resnet34, resnet50 and gpt; FormatError for weights that
/// do not fit.
[[nodiscard]] std::unique_ptr<const Network> make_network(const Bundle& bundle);

/// Makes a multi-layer perceptron.
[[nodiscard]] std::unique_ptr<const Network> make_mlp(const Bundle& bundle);
/// Makes a ResNet-9.
[[nodiscard]] std::unique_ptr<const Network> make_resnet9(const Bundle& bundle);
/// Makes a ResNet with torchvision's names, of so many blocks in each layer.
[[nodiscard]] std::unique_ptr<const Network> make_resnet(const Bundle& bundle,
                                                         const std::vector<int64_t>& blocks,
                                                         bool bottleneck);
/// Makes a GPT-2.
[[nodiscard]] std::unique_ptr<const Network> make_gpt(const Bundle& bundle);

}  // namespace tare::lite
