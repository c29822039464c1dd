// Names what the numbers of a prediction mean: classes with probabilities, or values with targets.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tare/lite/lite.h"

namespace tare::lite {

/// Holds a class with its score.
struct ClassScore {
  std::string label{};    ///< of the class; its index as text if the bundle has no labels
  int64_t index = 0;      ///< of the class
  float probability = 0;  ///< the output after the bundle's activation
};

/// Whether an output of one sample, of `shape` without the batch, is scores of classes, which
/// classes() names.
[[nodiscard]] bool has_classes(const Model& model, const std::vector<int64_t>& shape);
/// Returns the `top` most probable classes of such an output, the most probable first; of a
/// language model those of the token that follows the last. Unset: one, or all where a sample may
/// have several labels.
[[nodiscard]] std::vector<ClassScore> classes(const Model& model, const std::vector<int64_t>& shape,
                                              std::span<const float> values,
                                              std::optional<int64_t> top);
/// Returns the names of the values of an output of that many; empty: unknown.
[[nodiscard]] std::vector<std::string> value_names(const Model& model, size_t values);
/// Returns both as JSON, as tare::prediction_json() does.
[[nodiscard]] nlohmann::json described(const Model& model, const std::vector<int64_t>& shape,
                                       std::span<const float> values, std::optional<int64_t> top);

}  // namespace tare::lite
