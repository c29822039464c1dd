// The description, in a bundle, of the data on which its model was trained. Internal.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tare/callback/callback.h"
#include "tare/data/splits.h"
#include "tare/inference/bundle.h"
#include "tare/metric/metric.h"

namespace tare {

/// Holds the data of a fit, as a bundle describes them; a value, so that the data may be freed.
struct BundleData {
  std::vector<int64_t> sample_shape{};
  std::vector<int64_t> any_size{};    ///< of the first input, see BundleManifest::any_size
  Transforms transforms{};            ///< deterministic: what validation saw
  std::vector<std::string> labels{};  ///< empty: unknown
  int64_t text_length = 0;            ///< see Dataset::text_length()
  std::vector<double> levels{};       ///< see BundleManifest::levels
  std::optional<RowCoding> rows{};    ///< see BundleManifest::rows
  bool described = true;              ///< false: no split describes everything done to its inputs
  std::optional<c10::ScalarType> input{};  ///< dtype of a sample; unset: no batch was seen
  std::string input_name{};                ///< of the first input; empty: no batch was seen
  std::vector<BundleInput> more_inputs{};  ///< those after the first, where a batch was seen
};

/// Describes the first split of valid, train and test that describes everything done to its inputs;
/// the labels are those of the first split that has some. Reads no sample. Unset: there is no data.
[[nodiscard]] std::optional<BundleData> bundle_data(const Splits& data);

/// Returns the inputs of a batch after the first, as a bundle describes them; a dtype that no
/// bundle can name has the name that LibTorch gives it.
[[nodiscard]] std::vector<BundleInput> more_inputs(const Batch& batch);

/// Lists the dimensions, ascending, in which the samples of each input differ; less lists than
/// inputs: the others have none.
using VaryingDimensions = std::vector<std::vector<int64_t>>;
/// Finds what differs between the smallest and largest samples of a split, which it reads, and
/// between the splits' sample shapes. Data of one size are not read.
[[nodiscard]] VaryingDimensions varying_dimensions(const Splits& data);
/// Adds the dimensions to the inputs of the description.
void add_varying(BundleData& to, const VaryingDimensions& dimensions);

/// Adds dtype, further inputs and varying dimensions, by reading a few samples.
void add_inputs(BundleData& to, const Splits& data);

/// Returns the description as a checkpoint holds it, a JSON object.
[[nodiscard]] std::string text_of(const BundleData& data);
/// Returns the inverse of text_of(). Throws ConfigError for another text, and for a transform that
/// the registry does not have.
[[nodiscard]] BundleData bundle_data_from(const std::string& text);

/// Puts the description into a manifest. Throws StateError, naming `call`, for data that no bundle
/// can describe.
void describe(BundleManifest& manifest, const BundleData& data, const char* call);

/// Makes the labels of data whose targets are all 0 and 1 the targets of a model that predicts
/// numbers: one with a named loss without an activation, and an output for each of them.
void name_numbers(BundleManifest& manifest);

/// Returns the metric of a column of the epochs table; nullptr for a column of a callback.
[[nodiscard]] const Metric* find_metric(const std::string& column,
                                        const std::vector<Metric>& metrics);

/// Returns the figures of a bundle, of the epoch whose weights it has: the loss of the validation
/// and the metrics, without values that are not numbers. nullptr: none.
[[nodiscard]] std::vector<BundleMetric> bundle_metrics(const EpochRow* row,
                                                       const std::vector<Metric>& metrics);

/// Checks that a bundle can describe the data on which a model is trained. Throws as describe(),
/// and ConfigError as write_bundle().
void check_describable(const BundleData& data, const char* call);

/// Returns `data` for a model from a bundle: with the bundle's transforms, or with those of them
/// that the data set does not have yet. uint8 images become float32 where the model takes it, as
/// Predictor converts them. Throws ConfigError for a data set that has other ones,
/// naming both.
[[nodiscard]] DatasetPtr as_trained(const DatasetPtr& data, const BundleManifest& manifest);

}  // namespace tare
