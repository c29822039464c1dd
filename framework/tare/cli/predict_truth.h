// What samples are known to be, for `tare predict --score`: classes of folders and columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tare/inference/bundle.h"
#include "tare/transform/table_text.h"

namespace tare::cli {

/// Holds what a sample is known to be; a value.
struct Truth {
  int64_t index = -1;             ///< of its class; -1: it has numbers; kIgnoredLabel: none counts
  std::vector<double> numbers{};  ///< one for each output: of labels 0 or 1, else of targets
};

/// Finds what samples are known to be, in the folder, the table or the array that they are from.
/// Refers to the manifest, which must outlive it.
class Truths {
 public:
  /// Takes the value of --score: the column of a list, or the .npy file of an array's targets.
  /// Throws ConfigError for a model whose predictions cannot be scored.
  Truths(const BundleManifest& manifest, std::string given);

  /// Throws ConfigError for a folder whose subfolders are splits and no classes of the model.
  void check_folder(const std::filesystem::path& folder) const;
  /// Returns the class of a file below a folder, which is the subfolder directly in the folder that
  /// leads to the file. Throws ConfigError for a file without a class, and a class that the model
  /// does not have.
  [[nodiscard]] Truth of_file(const std::filesystem::path& folder,
                              const std::filesystem::path& file) const;
  /// Returns the places of the columns that have the classes or the numbers. Throws ConfigError for
  /// a table without them.
  [[nodiscard]] std::vector<size_t> columns(const TableText& table) const;
  /// Returns what a row has in these columns. Throws FormatError for a missing field, a class that
  /// the model does not have, and what is no number.
  [[nodiscard]] Truth of_row(const TableText& table, int64_t row,
                             const std::vector<size_t>& columns) const;
  /// Returns what the samples of an array are known to be. Throws ConfigError where no .npy file
  /// was given, or for another number of samples; FormatError for classes and numbers that are none
  /// of the model's.
  [[nodiscard]] std::vector<Truth> of_array(const std::string& path, int64_t samples) const;
  /// Throws ConfigError for an input whose samples have nothing to compare with.
  [[noreturn]] static void refuse(const std::string& input);

 private:
  [[nodiscard]] bool has_numbers() const;
  [[nodiscard]] Truth of_class(std::string_view name) const;

  const BundleManifest& manifest_;
  std::string given_;
};

/// Is the value of --score where none is given: the column of a list that has the classes.
inline constexpr const char* kScoreColumn = "label";

}  // namespace tare::cli
