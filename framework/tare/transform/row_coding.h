// RowCoding: how the rows of a table become samples, with what was learnt on the training split. A
// bundle stores it, so that training and prediction cannot differ.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tare/config/field.h"
#include "tare/transform/table_text.h"

namespace tare {

/// Says how the fields of one column become numbers.
struct ColumnCoding {
  std::string name{};           ///< in the head of the table
  std::string kind = "number";  ///< number | category
  double mean = 0;              ///< number: is subtracted
  double deviation = 1;         ///< number: divides what is left, > 0
  double missing = 0;  ///< number: takes the place of a missing field, in the column's unit
  std::vector<std::string> texts{};  ///< category: sorted; text i has code kFirstCode + i
  bool operator==(const ColumnCoding&) const = default;
};
void visit_fields(auto& visit, ColumnCoding& c) {
  visit("name", c.name);
  visit("kind", c.kind, config::one_of({"number", "category"}));
  visit("mean", c.mean);
  visit("deviation", c.deviation, config::above(0));
  visit("missing", c.missing);
  visit("texts", c.texts);
}

inline constexpr int64_t kMissingCode = 0;  ///< of a field of a category that is missing
inline constexpr int64_t kUnknownCode = 1;  ///< of a text that the training split does not have
inline constexpr int64_t kFirstCode = 2;    ///< of the first text

/// Describes the samples of a table: float32 [columns], the codes of the categories first, then the
/// numbers, each less its mean and divided by its deviation.
struct RowCoding {
  std::vector<ColumnCoding> columns{};  ///< in the order of a sample
  std::string target{};                 ///< the column that is predicted
  std::vector<std::string> targets{};   ///< the columns of several numbers, in place of `target`
  /// Mean and deviation of a target that is a number, in the training split; the target itself
  /// stays as it is. Deviation 0: the target is a class, or there are several.
  double target_mean = 0, target_deviation = 0;
  /// Means and deviations of `targets`, in their order; empty: they are labels of 0 and 1.
  std::vector<double> target_means{}, target_deviations{};
  /// Texts that stand for a missing field, see is_missing().
  std::vector<std::string> missing_values{};
  std::string separator{};  ///< see TableFormat
  bool header = true;       ///< see TableFormat
  bool operator==(const RowCoding&) const = default;
  /// Returns the number of codes of each column of categories, in their order.
  [[nodiscard]] std::vector<int64_t> categories() const;
  /// Returns how the files of rows are read.
  [[nodiscard]] TableFormat format() const { return {.separator = separator, .header = header}; }
};
void visit_fields(auto& visit, RowCoding& r) {
  visit("columns", r.columns);
  visit("target", r.target);
  visit("targets", r.targets);
  visit("target_mean", r.target_mean);
  visit("target_deviation", r.target_deviation, config::at_least(0));
  visit("target_means", r.target_means);
  visit("target_deviations", r.target_deviations, config::above(0));
  visit("missing_values", r.missing_values);
  visit("separator", r.separator);
  visit("header", r.header);
}

/// Whether a field is missing: it is empty, or, in upper or lower case, na, n/a, nan, null, none or
/// ?, or one of `more`.
[[nodiscard]] bool is_missing(std::string_view field, const std::vector<std::string>& more);
/// Returns the decimal number that a field is, if float32 holds it; unset: it is none, or beyond.
[[nodiscard]] std::optional<double> number_of(std::string_view field);

/// Makes samples of the rows of a table; refers to both, which must outlive it.
class RowEncoder {
 public:
  /// Finds the columns by their names, in any order. Throws ConfigError that names those which the
  /// table lacks.
  RowEncoder(const RowCoding& coding, const TableText& table);
  /// Returns the columns of the table that are neither inputs nor targets.
  [[nodiscard]] const std::vector<std::string>& unused() const { return unused_; }
  /// Returns one sample, float32 [1, columns]. Throws FormatError, naming path, line and column,
  /// for a field of numbers that is none.
  [[nodiscard]] at::Tensor sample(int64_t row) const;
  /// Returns all samples, float32 [rows, columns]. Throws as sample().
  [[nodiscard]] at::Tensor samples() const;

 private:
  void encode(int64_t row, float* out) const;
  const RowCoding& coding_;
  const TableText& table_;
  std::vector<size_t> places_;  // of the coding's columns in the table
  std::vector<std::string> unused_;
};

/// Returns the code of a text that is not missing.
[[nodiscard]] int64_t code_of(const ColumnCoding& column, std::string_view text);
/// Returns a number of the column as a sample has it.
[[nodiscard]] float normalised(const ColumnCoding& column, double value);

/// Returns the coding as bundles and checkpoints hold it, in YAML, and reads it back. The latter
/// throws ConfigError for another text.
[[nodiscard]] std::string text_of(const RowCoding& coding);
/// Reads what text_of() returns. Throws ConfigError for another text.
[[nodiscard]] RowCoding row_coding_from(const std::string& text);

}  // namespace tare
