// Predictions for samples in a JSON text, for programs that ask over a socket or a C interface.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tare/inference/predictor.h"

namespace tare {

/// Holds what a JSON text asks for.
struct JsonRequest {
  std::vector<Batch> samples{};  ///< one sample each, [1, ...], as Predictor::predict() takes it
  std::optional<int64_t> top{};  ///< classes of each sample, >= 1; unset: see prediction_json()
};

/// Reads `{"samples": [...], "top": 3}`, of which `top` may be missing. By the model of the
/// predictor a sample is
/// - of pictures: `{"b64": "..."}`, the bytes of a PNG, JPEG or WebP file in Base64, which are
///   resized where the transforms do not bring them to the model's shape; or the levels, whole
///   numbers in [0, 255] in arrays [channels][height][width];
/// - of the rows of a table: an object with the fields of the columns, null for a missing one;
/// - of tokens: an array of whole numbers, or a text, as parse_text() takes it;
/// - of features: numbers in arrays of the shape of a sample;
/// - of a model of several inputs: an object with such arrays under the names of the inputs.
/// Throws FormatError that names the sample, from 0, for another form, for more than `most` samples
/// and for none; ConfigError for a table without a column that the model takes.
[[nodiscard]] JsonRequest read_request(std::string_view text, const Predictor& predictor,
                                       int64_t most);

/// Predicts the samples, those of one shape together, at most `batch` >= 1 at a time. Returns the
/// outputs of each, [1, ...], in their order. Throws as Predictor::predict().
[[nodiscard]] std::vector<Outputs> predict_samples(Predictor& predictor,
                                                   std::span<const Batch> samples, int64_t batch);

/// Describes one of the outputs for a sample, [1, ...]: `{"predictions": [{"label", "index",
/// "probability"}, ...]}`, the `top` most probable classes, without `top` one, or all where a
/// sample may have several labels; else `{"shape", "values"}`, and `targets`, their names, where
/// they are known. `number`: of the output, from 0.
[[nodiscard]] nlohmann::json prediction_json(const Predictor& predictor, const Outputs& outputs,
                                             size_t number, std::optional<int64_t> top);

/// Returns `{"samples": [...]}`, for each sample what prediction_json() returns, or `{"outputs":
/// [...]}` with that for each output of a model of several.
[[nodiscard]] std::string response_json(const Predictor& predictor,
                                        std::span<const Outputs> outputs,
                                        std::optional<int64_t> top);

}  // namespace tare
