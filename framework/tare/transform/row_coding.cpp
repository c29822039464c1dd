// Encodes the rows of a table by what was learnt on a training split.
#include "tare/transform/row_coding.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "tare/base/error.h"
#include "tare/transform/number_hint.h"

namespace tare {
namespace {

constexpr const char* kWhere = "data.table";

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

}  // namespace

std::vector<int64_t> RowCoding::categories() const {
  std::vector<int64_t> counts;
  for (const ColumnCoding& column : columns)
    if (column.kind == "category")
      counts.push_back(kFirstCode + static_cast<int64_t>(column.texts.size()));
  return counts;
}

bool is_missing(std::string_view field, const std::vector<std::string>& more) {
  constexpr std::array<std::string_view, 7> kMissing{"", "na", "n/a", "nan", "null", "none", "?"};
  constexpr size_t kLongest = 4;
  if (field.size() <= kLongest && std::ranges::find(kMissing, lower(field)) != kMissing.end())
    return true;
  return std::ranges::find(more, field) != more.end();
}

std::optional<double> number_of(std::string_view field) {
  if (field.starts_with('+')) field.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  const bool whole = error == std::errc() && end == field.data() + field.size();
  const bool held = std::abs(value) <= static_cast<double>(std::numeric_limits<float>::max());
  return whole && held ? std::optional(value) : std::nullopt;
}

int64_t code_of(const ColumnCoding& column, std::string_view text) {
  const auto found = std::ranges::lower_bound(
      column.texts, text, {}, [](const std::string& t) -> std::string_view { return t; });
  if (found == column.texts.end() || *found != text) return kUnknownCode;
  return kFirstCode + (found - column.texts.begin());
}

float normalised(const ColumnCoding& column, double value) {
  return static_cast<float>((value - column.mean) / column.deviation);
}

RowEncoder::RowEncoder(const RowCoding& coding, const TableText& table)
    : coding_(coding), table_(table) {
  const auto& names = table.names();
  std::vector<std::string> lacks;
  std::vector<bool> used(names.size(), false);
  for (const ColumnCoding& column : coding.columns) {
    const auto found = std::ranges::find(names, column.name);
    if (found == names.end()) {
      lacks.push_back(column.name);
      continue;
    }
    places_.push_back(static_cast<size_t>(found - names.begin()));
    used[places_.back()] = true;
  }
  if (!lacks.empty())
    throw ConfigError(kWhere, "'" + printable(table.path()) + "' lacks the " +
                                  (lacks.size() == 1 ? "column " : "columns ") + listed(lacks, 20) +
                                  " of the model; its head names " + listed(names, 20));
  for (size_t i = 0; i < names.size(); ++i)
    if (!used[i] && names[i] != coding.target && std::ranges::count(coding.targets, names[i]) == 0)
      unused_.push_back(names[i]);
}

void RowEncoder::encode(int64_t row, float* out) const {
  for (size_t i = 0; i < places_.size(); ++i) {
    const ColumnCoding& column = coding_.columns[i];
    const std::string_view field = table_.field(row, places_[i]);
    const bool missing = is_missing(field, coding_.missing_values);
    if (column.kind == "category") {
      out[i] = static_cast<float>(missing ? kMissingCode : code_of(column, field));
      continue;
    }
    const auto value = missing ? std::optional(column.missing) : number_of(field);
    if (!value)
      throw FormatError(kWhere, table_.path(), "line " + std::to_string(table_.line(row)),
                        "has '" + printable(field, 50) + "' in the column '" +
                            printable(column.name) +
                            "', which is of numbers: " + number_hint(field));
    out[i] = normalised(column, *value);
    if (!std::isfinite(out[i]))
      throw FormatError(kWhere, table_.path(), "line " + std::to_string(table_.line(row)),
                        "has '" + printable(field, 50) + "' in the column '" +
                            printable(column.name) + "', too far from the numbers of the training");
  }
}

at::Tensor RowEncoder::sample(int64_t row) const {
  at::Tensor one = at::empty({1, static_cast<int64_t>(places_.size())}, at::kFloat);
  encode(row, one.mutable_data_ptr<float>());
  return one;
}

at::Tensor RowEncoder::samples() const {
  const auto columns = static_cast<int64_t>(places_.size());
  at::Tensor all = at::empty({table_.rows(), columns}, at::kFloat);
  float* out = all.mutable_data_ptr<float>();
  for (int64_t row = 0; row < table_.rows(); ++row) encode(row, out + row * columns);
  return all;
}

std::string text_of(const RowCoding& coding) { return config::to_yaml(config::to_node(coding)); }

RowCoding row_coding_from(const std::string& text) {
  RowCoding coding = config::read<RowCoding>(config::parse_text(text, "columns"));
  config::validate(coding, "columns");
  for (const ColumnCoding& column : coding.columns)
    if (!std::ranges::is_sorted(column.texts))
      throw ConfigError("columns", "texts", "are not sorted", "sorted texts", column.name);
  return coding;
}

}  // namespace tare
