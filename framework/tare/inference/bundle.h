// Bundles: one file with everything needed to predict, and nothing that only training needs.
//
// A bundle is a valid safetensors file. Its metadata entry "tare" is a sealed JSON manifest: how to
// rebuild the model, its input transforms, what its outputs mean, and a hash of every tensor. See
// docs/formats.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tare/checkpoint/safetensors.h"
#include "tare/model/model.h"
#include "tare/transform/row_coding.h"
#include "tare/transform/transform.h"

namespace tare {

/// Holds a number that was measured when the model was exported, e.g. {"accuracy", 0.9931}.
struct BundleMetric {
  std::string name{};  ///< of the metric, e.g. "accuracy"
  double value = 0;    ///< as it was measured
  /// The metric with its options, `{top_k: {k: 3}}`; empty: it has the defaults of its name.
  std::string metric{};
  bool operator==(const BundleMetric&) const = default;
};

/// Describes one input of the model.
struct BundleInput {
  std::string name{};                   ///< in the batches of training, at most 4 KiB
  std::string dtype = "float32";        ///< as BundleManifest::input
  std::vector<int64_t> sample_shape{};  ///< of one sample, at most 8 sizes >= 1
  std::vector<int64_t> any_size{};      ///< as BundleManifest::any_size
  bool operator==(const BundleInput&) const = default;
};

/// Describes the model of a bundle, its inputs and its outputs, without the tensors.
struct BundleManifest {
  /// The model's name in the registry and its options; an empty name: a module that is not in it.
  ModelSpec model{};
  /// The shape of one sample of the model's first input: [channels, height, width], [features] or,
  /// of tokens, the longest that training saw, [tokens]; empty: unknown.
  std::vector<int64_t> sample_shape{};
  /// The dimensions of sample_shape, ascending, in which samples of the training differed, such as
  /// the 0 of sequences [length, features]. Inputs may have any size >= 1 there.
  std::vector<int64_t> any_size{};
  /// Dtype of the model's first input: float32 | float64 | uint8 (an image as it is in its file) |
  /// int64 | int32 (tokens) | bool (a mask).
  std::string input = "float32";
  /// The name of the first input in the batches of training, at most 4 KiB; empty: unknown.
  std::string input_name{};
  /// The least and the most number of the first input in training before all transforms, of
  /// pictures of 8 bits 0 and 1; empty: unknown, or samples have one dimension.
  std::vector<double> levels{};
  /// The inputs after the first, in the order of the model's forward; at most 64.
  std::vector<BundleInput> more_inputs{};
  /// Texts are cut to so many bytes, as the reader of the training data did; 0: they are whole.
  int64_t text_length = 0;
  /// Says how the rows of a table become samples, see RowEncoder; unset: samples are no rows of a
  /// table.
  std::optional<RowCoding> rows{};
  /// The names of the numbers that the model predicts, where `rows` does not have them; at most
  /// 1,000,000 of 4 KiB each; empty: unknown.
  std::vector<std::string> targets{};
  /// Steps for every input that is an image [channels, height, width]. Random ones are skipped when
  /// writing.
  Transforms transforms{};
  /// Names in `transforms` that this program's transforms::registry() lacks; see
  /// open_to_describe().
  std::vector<std::string> unknown_transforms{};
  /// Whether a picture is resized with antialiasing where the transforms do not bring it to
  /// sample_shape; false in a bundle of images by an earlier Tare.
  bool antialias = true;
  /// Class names by index, at most 1,000,000 of 4 KiB each; empty: unknown.
  std::vector<std::string> labels{};
  /// Measured over the validation split with the weights as they are stored; where rounded weights
  /// were not measured, as they were trained.
  std::vector<BundleMetric> metrics{};
  /// The figures of the weights before they were rounded; empty: they are not, or `metrics` has
  /// them.
  std::vector<BundleMetric> trained_metrics{};
  /// softmax | exp | sigmoid | none: turns outputs into predictions, over dimension 1.
  std::string activation = "none";
  /// The loss it was trained with, see losses::text_of(): its name, or name and options in YAML;
  /// empty: unknown, or a function.
  std::string loss{};
  /// Names the storage of the matrices: as_is | bf16 | fp16 | fp8 | int8, see state_for().
  /// write_bundle() takes from it whether tensors of 16 bits are rounded ones, and fills in the
  /// rest.
  std::string weights = "as_is";
  /// Versions that wrote it; filled in by write_bundle().
  std::string tare_version{}, libtorch_version{};
};

/// Distinguishes the kinds of data that a sample is outside of the program.
enum class SampleKind {
  image,     ///< a picture: [1 or 3, height, width]
  features,  ///< numbers, in any other shape
  tokens     ///< whole numbers, of any length
};

/// Returns the kind of the model's samples, from the shape and dtype of its input.
[[nodiscard]] SampleKind sample_kind(const BundleManifest& manifest);
/// Returns the dimensions of a sample of the first input that may have any size: those of
/// BundleManifest::any_size; where it is empty, the last one of tokens.
[[nodiscard]] std::vector<int64_t> any_size(const BundleManifest& manifest);
/// Returns the number of classes or values in the model's output: as many as there are labels, else
/// the number in the options of a registry model; unset: unknown.
[[nodiscard]] std::optional<int64_t> class_count(const BundleManifest& manifest);
/// Whether the model's output is scores of classes, and not values as those of a regression: an
/// activation makes probabilities of it, or its classes have labels.
[[nodiscard]] bool gives_classes(const BundleManifest& manifest);

/// Returns the names of the numbers that the model predicts, in the order of its output: the
/// targets of the training; empty: unknown, or its output is scores of classes.
[[nodiscard]] std::vector<std::string> target_names(const BundleManifest& manifest);

/// Writes a bundle atomically and flushes it: on any error the old file stays. The tensors may be
/// on any device; float8 ones come with their scales (state_for()). Waits for the device. Throws
/// ConfigError for a manifest field out of range or tensors that cannot be written, FormatError for
/// a float8 tensor without a scale, IoError.
void write_bundle(const std::filesystem::path& path, const BundleManifest& manifest,
                  const std::vector<NamedTensor>& tensors);

/// Throws the ConfigError that write_bundle() would throw for the manifest.
void check_bundle(const BundleManifest& manifest);

/// Holds an open, verified bundle; a value. Its tensors are on the mapped file (see SafeTensors).
class Bundle {
 public:
  /// Returns the bundle's description of itself.
  [[nodiscard]] const BundleManifest& manifest() const { return manifest_; }
  /// Returns the weights; mapped.
  [[nodiscard]] const checkpoint::SafeTensors& file() const { return file_; }
  /// Returns the tensors as they are stored: float8 weights and their scales are two tensors.
  [[nodiscard]] std::vector<NamedTensor> tensors() const { return file_.all(); }
  /// Returns the scales of float8 weights, by the weight's name.
  [[nodiscard]] const std::map<std::string, at::Tensor>& scales() const { return scales_; }
  [[nodiscard]] int64_t elements() const;  ///< counts weights and buffers, without scales

 private:
  friend Bundle open_to_describe(const std::filesystem::path& path);
  Bundle(checkpoint::SafeTensors file, BundleManifest manifest,
         std::map<std::string, at::Tensor> scales)
      : file_(std::move(file)), manifest_(std::move(manifest)), scales_(std::move(scales)) {}
  checkpoint::SafeTensors file_;
  BundleManifest manifest_;
  std::map<std::string, at::Tensor> scales_;
};

/// Maps a bundle into memory and verifies all of it, including the hash of every tensor. Throws
/// IoError; FormatError, naming tensor or field, for a file that is truncated, altered, no bundle,
/// or of a newer format, for float8 weights that scales_in() refuses, and for a transform that
/// another program added and this one did not.
[[nodiscard]] Bundle open_bundle(const std::filesystem::path& path);
/// Opens and verifies a bundle as open_bundle(), but lists transforms that this program lacks in
/// BundleManifest::unknown_transforms. They throw StateError when they are applied.
[[nodiscard]] Bundle open_to_describe(const std::filesystem::path& path);

/// Returns the name of a dtype for BundleManifest::input; bfloat16 and float16 are float32, to
/// which a model in full precision takes its input. Throws ConfigError for a dtype that no bundle
/// can name.
[[nodiscard]] std::string bundle_input(c10::ScalarType dtype);
/// Returns the dtype that a name of BundleManifest::input stands for. Throws ConfigError.
[[nodiscard]] c10::ScalarType bundle_dtype(const std::string& input);
/// Whether the model takes tokens, according to the registry; false for a model that is not in it.
[[nodiscard]] bool takes_tokens(const ModelSpec& model);

/// Builds the bundle's model by the registry and copies its weights in; on the CPU, in evaluation
/// mode. Throws ConfigError for a model that the registry does not know, FormatError if the tensors
/// do not fit.
[[nodiscard]] Model make_model(const Bundle& bundle);

/// Copies a bundle's weights into a model on any device, e.g. one that is not in the registry.
/// Everything is checked first: on an error the model is unchanged. Throws FormatError listing what
/// does not fit.
void load_weights(Model& model, const Bundle& bundle);

}  // namespace tare
