// export_bundle(): a bundle from a run's folder, one of its checkpoints, or another bundle.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace tare {

/// Says what export_bundle() writes.
struct BundleFormat {
  /// as ExportOptions::weights, where as_is keeps a bundle's fp8 weights but writes those of a
  /// checkpoint in float32; unset: the recipe's export_weights, for a bundle as_is
  std::optional<std::string> weights{};
  /// `tare`: a bundle; else a format of interchange::file_formats(), for which `weights` is one of
  /// FileFormat::weights
  std::string format = "tare";
  bool fold_norms = false;  ///< see interchange::FileOptions::fold_norms
  int64_t opset = 18;       ///< see interchange::FileOptions::opset
  /// See ExportOptions::tolerance; for rounded weights of a run or a checkpoint.
  std::optional<double> tolerance{};
};

/// Reports what export_bundle() read and wrote.
struct BundleExport {
  std::filesystem::path from{};    ///< the checkpoint or the bundle that was read
  std::filesystem::path bundle{};  ///< what was written
  int64_t bytes = 0;               ///< of what was written
  std::filesystem::path second{};  ///< ExportedFile::second
  double difference = 0;           ///< ExportedFile::difference
  std::string phase{};             ///< whose data the bundle describes; empty: a bundle was read
};

/// Writes a bundle as Learner::export_to() does, and verifies it. `from` is
/// - a run's folder, with its recipe.yaml: the newest automatic checkpoint of an unfinished run is
///   taken; else the bundle that the run exported; else the newest checkpoint that a phase saved;
/// - a checkpoint in a run's folder; the phase that saved it says which data it was trained on;
/// - a bundle, which is verified and written anew in the format of this version.
/// An empty `to` is the run's `export` file, or NAME.tare, in the run's folder; for a checkpoint it
/// is CHECKPOINT.tare beside it; a bundle needs one. Another format has its own extension in place
/// of .tare. The data of a checkpoint's recipe must be there. Rounded weights of a run or a
/// checkpoint are measured over its validation split, on the host; where a run's bundle is there
/// and its data are not, a warning says that they are not measured, unless a tolerance needs it.
/// Throws ConfigError for what is not one of these, a bundle without `to`, and a `to` that is a
/// folder or a name that the run of its folder uses itself; FormatError for what does not verify,
/// with what else of a run's folder can be exported, or does not fit the recipe's model; IoError.
BundleExport export_bundle(const std::filesystem::path& from, const std::filesystem::path& to = {},
                           const BundleFormat& format = {});

}  // namespace tare
