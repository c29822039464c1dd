// Writes the model of a bundle for other programs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tare/inference/bundle.h"
#include "tare/model/model.h"

namespace tare::interchange {

/// Describes a format that export_file() writes.
struct FileFormat {
  std::string name{};       ///< as `tare export --format` takes it
  std::string extension{};  ///< of its files, with the dot
  std::string readers{};    ///< programs that read it, for people
  /// How its weights may be stored, the first of them by default; float32 where it is one.
  std::vector<std::string> weights{};
  bool graph = false;  ///< whether a file has what the model computes, and not the weights alone
};

/// Counts the samples of the largest batch for which a graph is compared with its model.
inline constexpr int64_t kLargestCompared = 5;

/// Returns the formats: `gguf`, `onnx`, `pt2` and `safetensors`.
[[nodiscard]] const std::vector<FileFormat>& file_formats();
/// Returns the names of the formats.
[[nodiscard]] std::vector<std::string> format_names();
/// Whether ONNX files are written with this version of ONNX's operators: 18, or 23.
[[nodiscard]] bool is_opset(int64_t version);
/// Throws ConfigError for a name that is no format, with those that are.
[[nodiscard]] const FileFormat& file_format(const std::string& name);

/// Sets how export_file() writes a model.
struct FileOptions {
  std::string weights{};  ///< one of FileFormat::weights; empty: the first
  /// The model itself, on any device, from which the graph of one that is not in the registry is
  /// made; it is as before at the end. Null: there is none.
  Model* module = nullptr;
  bool fold_norms = false;  ///< in a graph, see interchange::fold_norms()
  int64_t opset = 18;       ///< of onnx, see OnnxOptions::opset
};

/// Reports what export_file() wrote.
struct ExportedFile {
  int64_t bytes = 0;  ///< of all files
  /// The second file, in which the weights lie where one file cannot hold them; empty: there is
  /// none.
  std::filesystem::path second{};
  int64_t largest_batch = 0;  ///< samples of the largest batch that was compared; 0: none was
  /// The largest difference between the graph and the model, as a share of the largest output or of
  /// 1; 0 where no graph is written.
  double difference = 0;
};

/// Writes a model in a format. `safetensors` has the tensors alone. `pt2` and `onnx` have what the
/// model computes, from its input to its output before the activation, behind the scaling of
/// add_transforms(): first the graph is computed for batches of 1, 2 and kLargestCompared samples
/// and compared with the model. `gguf` has the weights of a `gpt` under the names of llama.cpp. The
/// manifest, with the preprocessing, the labels and the hashes of the weights, is written as JSON
/// into the file: `extra/tare.json` of pt2, the metadata `tare.manifest` of the others. The file is
/// read back and removed where it is not as it was written; on any other error the old file stays.
/// Throws ConfigError for an unknown format, a file at `path` that Tare has not written in it, a
/// model that is not in the registry without FileOptions::module, a TorchScript program, an
/// operator that the format lacks and a graph that differs by more than 1e-5; FormatError for
/// tensors that do not fit; IoError.
ExportedFile export_file(const std::filesystem::path& path, const std::string& format,
                         const BundleManifest& manifest, const std::vector<NamedTensor>& tensors,
                         const FileOptions& options = {});

/// Throws ConfigError for a file at `path` that export_file() would not replace.
void check_replaceable(const std::filesystem::path& path, const std::string& format);

/// Throws what export_file() would throw for a format, a model and a storage of the weights,
/// whatever values the weights have: an unknown format, a model that the format cannot hold. A
/// model of the registry is made anew, without its values, on the host. Writes nothing.
void check_file(const std::string& format, const BundleManifest& manifest,
                const FileOptions& options = {});

}  // namespace tare::interchange
