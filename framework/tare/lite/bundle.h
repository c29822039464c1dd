// Bundles without LibTorch: the manifest as far as a prediction needs it, and views of the weights.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/checkpoint/safetensors_header.h"
#include "tare/lite/layers.h"

namespace tare::lite {

/// Reports a bundle, or an input, that is valid and that this engine does not compute with;
/// LibTorch does.
class Unsupported : public Error {
 public:
  /// Takes the reason as it continues "the engine without LibTorch": "has no model 'unet'".
  explicit Unsupported(const std::string& reason);
};

/// Describes a bundle's model and what surrounds it; see docs/formats.md.
struct Manifest {
  std::string family{};                 ///< of the model, such as resnet18
  std::string options{};                ///< of the model, YAML
  std::vector<int64_t> sample_shape{};  ///< of one input as the model takes it
  std::vector<int64_t> any_size{};      ///< dimensions of sample_shape that may have any size
  std::string input = "float32";        ///< dtype of the input
  std::string transforms{};             ///< YAML
  bool antialias = false;               ///< of a resize to sample_shape
  std::vector<std::string> labels{};    ///< of the classes
  std::vector<std::string> targets{};   ///< names of the numbers that are predicted
  std::string activation = "none";      ///< softmax | exp | sigmoid | none
  std::string loss{};                   ///< of the training
  std::string weights = "as_is";        ///< the storage of the matrices
};

/// Holds an open bundle, whose weights stay in the mapped file; copies share the map. Thread-safe.
class Bundle {
 public:
  /// Maps the file and verifies all of it, as tare::open_bundle() does. Throws IoError,
  /// FormatError; Unsupported for a bundle of several inputs or of rows of a table.
  explicit Bundle(const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }  ///< of the file
  [[nodiscard]] const Manifest& manifest() const { return manifest_; }  ///< without the tensors
  [[nodiscard]] bool contains(const std::string& name) const;  ///< whether there is such a tensor
  /// Returns the sizes of a tensor. Throws FormatError for an unknown name.
  [[nodiscard]] const std::vector<int64_t>& shape(const std::string& name) const;
  /// Returns a view of a weight of these sizes. Throws FormatError for another shape or dtype.
  [[nodiscard]] Matrix weight(const std::string& name, const std::vector<int64_t>& shape) const;
  /// Returns the numbers of a float32 tensor with this many. Throws as weight().
  [[nodiscard]] std::span<const float> numbers(const std::string& name, int64_t count) const;
  /// Returns the number in the options of the model; `fallback` where they do not have it, or 0.
  /// Throws FormatError for what is no whole number.
  [[nodiscard]] int64_t option(std::string_view name, int64_t fallback) const;

 private:
  [[nodiscard]] const checkpoint::TensorInfo& info(const std::string& name) const;
  [[nodiscard]] std::span<const std::byte> data(const checkpoint::TensorInfo& info) const;
  [[nodiscard]] const checkpoint::TensorInfo& checked(const std::string& name,
                                                      const std::vector<int64_t>& shape) const;
  [[noreturn]] void refuse(const std::string& part, const std::string& problem) const;

  std::filesystem::path path_;
  std::shared_ptr<io::Mapping> mapping_;
  std::shared_ptr<const checkpoint::Header> header_;
  std::map<std::string, const checkpoint::TensorInfo*> tensors_;
  Manifest manifest_;
};

}  // namespace tare::lite
