// Finds the classes and the numbers with which predictions are compared.
#include "tare/cli/predict_truth.h"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/data/npy.h"
#include "tare/inference/one_score.h"
#include "tare/metric/loss.h"
#include "tare/transform/number_hint.h"

namespace tare::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWhere = "predict";
constexpr size_t kMostNames = 20;
/// Lists the folders of splits, those that a training has not seen first.
constexpr std::array<const char*, 4> kSplits{"test", "valid", "val", "train"};

/// Returns the number of outputs that numbers are compared with; unset: not known.
std::optional<int64_t> outputs_of(const BundleManifest& manifest) {
  if (const auto targets = target_names(manifest); !targets.empty()) return std::ssize(targets);
  return class_count(manifest);
}

std::string label_text(std::string_view name) { return '\'' + printable(name, 50) + '\''; }

}  // namespace

Truths::Truths(const BundleManifest& manifest, std::string given)
    : manifest_(manifest), given_(std::move(given)) {
  if (takes_tokens(manifest.model))
    throw ConfigError(kWhere,
                      "--score is for classes and numbers of whole samples, and the model predicts "
                      "tokens: omit it");
}

bool Truths::has_numbers() const {
  return !gives_classes(manifest_) || has_several_labels(manifest_);
}

Truth Truths::of_class(std::string_view name) const {
  const std::vector<std::string>& labels = manifest_.labels;
  auto found = std::ranges::find(labels, name);
  // Classes that are whole numbers, which a table may write as 3.0.
  const auto number = number_of(name);
  if (found == labels.end() && number && *number == std::floor(*number))
    found = std::ranges::find(labels, std::to_string(static_cast<int64_t>(*number)));
  if (found != labels.end()) return {.index = found - labels.begin()};
  if (labels.empty())
    throw ConfigError(kWhere,
                      "--score cannot compare the class " + label_text(name) +
                          ", because the bundle has no names of classes: give an array, and "
                          "--score=FILE with a .npy file of their numbers");
  throw ConfigError(kWhere, "the class " + label_text(name) + " is none of the model" +
                                did_you_mean(std::string(name), labels) + "; its classes are " +
                                listed(labels, kMostNames));
}

void Truths::check_folder(const fs::path& folder) const {
  const auto is_there = [&](const std::string& name) {
    std::error_code ignored;  // what cannot be looked at is no folder
    return fs::is_directory(folder / name, ignored);
  };
  if (std::ranges::any_of(manifest_.labels, is_there)) return;
  const auto split = std::ranges::find_if(kSplits, is_there);
  if (split == kSplits.end()) return;
  const std::string found = printable((folder / *split).string(), 1000);
  throw ConfigError(kWhere, "'" + found +
                                "' is a split and no class of the model, and --score takes the "
                                "classes of files from the subfolders of '" +
                                printable(folder.string(), 1000) + "': give '" + found + "'");
}

Truth Truths::of_file(const fs::path& folder, const fs::path& file) const {
  const fs::path below = file.lexically_relative(folder);
  if (given_ != kScoreColumn)
    throw ConfigError(kWhere, "--score=" + printable(given_, 1000) +
                                  " names a column or a file, and the classes of a folder are its "
                                  "subfolders: give --score alone");
  if (has_numbers())
    throw ConfigError(
        kWhere,
        "--score takes classes from the subfolders of a folder, and the "
        "model predicts " +
            std::string(has_several_labels(manifest_) ? "several labels" : "numbers") +
            ": give a list with their columns");
  if (std::distance(below.begin(), below.end()) < 2)
    throw ConfigError(kWhere, "'" + printable(file.string(), 1000) +
                                  "' has no class: --score takes the class of a file from the "
                                  "subfolder of '" +
                                  printable(folder.string(), 1000) + "' that it is in");
  return of_class(below.begin()->string());
}

std::vector<size_t> Truths::columns(const TableText& table) const {
  std::vector<std::string> wanted{given_};
  const bool is_named = given_ != kScoreColumn;
  std::vector<std::string> known = target_names(manifest_);
  if (manifest_.rows)
    known = manifest_.rows->targets.empty() ? std::vector{manifest_.rows->target}
                                            : manifest_.rows->targets;
  else if (has_several_labels(manifest_))
    known = manifest_.labels;
  const bool names_the_target = known.size() == 1 && known.front() == given_;
  if (!known.empty() && is_named && !names_the_target)
    throw ConfigError(kWhere, "--score=" + printable(given_) +
                                  " names a column, and the bundle knows its own, " +
                                  listed(known, kMostNames) + ": give --score alone");
  if (!known.empty()) wanted = known;
  std::vector<size_t> places;
  for (const std::string& name : wanted) {
    const auto found = std::ranges::find(table.names(), name);
    if (found == table.names().end())
      throw ConfigError(kWhere, "'" + printable(table.path(), 1000) + "' has no column '" +
                                    printable(name) + "', with which --score compares" +
                                    did_you_mean(name, table.names()) +
                                    (known.empty() ? ": name the column of the classes, as in "
                                                     "--score=COLUMN; there are "
                                                   : "; there are ") +
                                    printable(listed(table.names(), kMostNames), 1000));
    places.push_back(static_cast<size_t>(found - table.names().begin()));
  }
  return places;
}

Truth Truths::of_row(const TableText& table, int64_t row,
                     const std::vector<size_t>& columns) const {
  const auto refuse_field = [&](size_t column, const std::string& problem) {
    throw FormatError(kWhere, table.path(), "line " + std::to_string(table.line(row)),
                      "column '" + printable(table.names()[column]) + "' " + problem);
  };
  const std::vector<std::string> missing =
      manifest_.rows ? manifest_.rows->missing_values : std::vector<std::string>();
  Truth truth;
  for (const size_t column : columns) {
    const std::string_view field = table.field(row, column);
    const bool of_table = manifest_.rows || has_numbers();  // "none" may be the class of a text
    if (field.empty() || (of_table && is_missing(field, missing)))
      refuse_field(column, "is missing, and --score compares with it: remove the row");
    if (!has_numbers()) return of_class(field);
    const auto number = number_of(field);
    if (!number)
      refuse_field(column, "has " + label_text(field) +
                               ", which is no finite number: " + number_hint(field));
    if (has_several_labels(manifest_) && *number != 0 && *number != 1)
      refuse_field(column, "has " + label_text(field) + ", and a label is 0 or 1");
    truth.numbers.push_back(*number);
  }
  return truth;
}

std::vector<Truth> Truths::of_array(const std::string& path, int64_t samples) const {
  if (fs::path(given_).extension() != ".npy")
    throw ConfigError(kWhere, "--score needs what the samples of '" + printable(path, 1000) +
                                  "' are: give --score=FILE with a .npy file of a class or the "
                                  "numbers of each");
  const at::Tensor array = read_npy(given_);
  const auto refuse_array = [&](const std::string& problem) {
    throw FormatError(kWhere, given_, "data", problem);
  };
  if (array.dim() < 1 || array.size(0) != samples)
    throw ConfigError(kWhere, "'" + printable(given_, 1000) + "' has " +
                                  format_count(array.dim() < 1 ? 1 : array.size(0)) +
                                  " targets for " + format_count(samples) + " samples of '" +
                                  printable(path, 1000) + "'");
  const at::Tensor rows = array.reshape({samples, -1}).to(at::kDouble).contiguous();
  const int64_t columns = samples > 0 ? rows.size(1) : 0;
  const auto outputs = outputs_of(manifest_);
  if (!has_numbers() && (columns != 1 || array.is_floating_point()))
    refuse_array("must be a whole number for each sample, that of its class");
  if (has_numbers() && outputs && *outputs != columns)
    refuse_array("has " + std::to_string(columns) + " numbers for each sample, and the model has " +
                 std::to_string(*outputs) + (*outputs == 1 ? " output" : " outputs"));
  const int64_t classes = has_one_score(manifest_) ? 2 : outputs.value_or(INT64_MAX);
  const double* value = rows.const_data_ptr<double>();
  std::vector<Truth> all;
  for (int64_t i = 0; i < samples; ++i) {
    Truth truth;
    for (int64_t column = 0; column < columns; ++column, ++value) {
      const bool is_class = (*value >= 0 && *value < static_cast<double>(classes)) ||
                            *value == static_cast<double>(kIgnoredLabel);
      if (!has_numbers() && !is_class)
        refuse_array("has the class " + std::to_string(static_cast<int64_t>(*value)) +
                     " in sample " + std::to_string(i + 1) + ", and the model has " +
                     std::to_string(classes) + " classes, which count from 0");
      if (!std::isfinite(*value))
        refuse_array("has NaN or an infinite number in sample " + std::to_string(i + 1));
      if (has_numbers())
        truth.numbers.push_back(*value);
      else
        truth.index = static_cast<int64_t>(*value);
    }
    all.push_back(std::move(truth));
  }
  return all;
}

void Truths::refuse(const std::string& input) {
  throw ConfigError(kWhere,
                    (input == "-" ? "standard input" : "'" + printable(input, 1000) + "'") +
                        " has nothing with which --score compares: give a folder with a subfolder "
                        "for each class, a list or a table with the column of the targets, or an "
                        "array and --score=FILE with a .npy file of its targets");
}

}  // namespace tare::cli
