// Packs the rows of the epochs into a tensor, and reads them back.
#include "tare/train/row_table.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "tare/base/error.h"

namespace tare {
namespace {

constexpr int64_t kFixed = 6;            // columns before the metrics
constexpr double kLargest = 0x1p53 - 1;  // whole numbers up to this are exact

[[noreturn]] void refuse(const std::string& problem) { throw ConfigError("row_table", problem); }

std::vector<std::string> names_of(const EpochRow& row) {
  std::vector<std::string> names;
  names.reserve(row.metrics.size());
  for (const auto& metric : row.metrics) names.push_back(metric.name);
  return names;
}

bool has_names(const EpochRow& row, const std::vector<std::string>& names) {
  return std::ranges::equal(row.metrics, names, {}, &MetricValue::name);
}

int64_t count_from(double value) {
  if (!(value >= 0) || value > kLargest || std::trunc(value) != value)
    refuse("holds a count that is not a whole number");
  return static_cast<int64_t>(value);
}

EpochRow row_from(const double* cells, const RowTable& table) {
  EpochRow row{.epoch = count_from(cells[0]),
               .train_loss = cells[1],
               .valid_loss = cells[2],
               .metrics = {},
               .seconds = cells[3],
               .samples = count_from(cells[4])};
  const int64_t combination = count_from(cells[5]);
  if (combination >= static_cast<int64_t>(table.columns.size()))
    refuse("has a row without names for its metrics");
  const auto& names = table.columns[static_cast<size_t>(combination)];
  if (static_cast<int64_t>(names.size()) > table.values.size(1) - kFixed)
    refuse("has fewer values than names in a row");
  for (size_t i = 0; i < names.size(); ++i)
    row.metrics.push_back({names[i], cells[static_cast<size_t>(kFixed) + i]});
  return row;
}

}  // namespace

at::Tensor unaccounted(at::IntArrayRef sizes, c10::ScalarType type) {
  const auto bytes = static_cast<size_t>(c10::multiply_integers(sizes)) * c10::elementSize(type);
  auto memory = std::make_unique<std::vector<double>>(bytes / sizeof(double) + 1);
  void* data = memory->data();
  const auto release = [owner = std::shared_ptr<std::vector<double>>(std::move(memory))](void*) {};
  return at::from_blob(data, sizes, release, at::TensorOptions(type));
}

RowTable table_of(const std::vector<EpochRow>& rows) {
  RowTable table;
  if (rows.empty()) return table;
  size_t widest = 0;
  for (const auto& row : rows) widest = std::max(widest, row.metrics.size());
  const int64_t width = kFixed + static_cast<int64_t>(widest);
  table.values = unaccounted({static_cast<int64_t>(rows.size()), width}, at::kDouble);
  auto* cells = table.values.mutable_data_ptr<double>();
  size_t combination = 0;  // rows with the same names usually follow each other
  for (const auto& row : rows) {
    if (table.columns.empty() || !has_names(row, table.columns[combination])) {
      const auto found = std::ranges::find_if(
          table.columns, [&](const auto& names) { return has_names(row, names); });
      combination = static_cast<size_t>(found - table.columns.begin());
      if (found == table.columns.end()) table.columns.push_back(names_of(row));
    }
    cells[0] = static_cast<double>(row.epoch);
    cells[1] = row.train_loss;
    cells[2] = row.valid_loss;
    cells[3] = row.seconds;
    cells[4] = static_cast<double>(row.samples);
    cells[5] = static_cast<double>(combination);
    for (size_t i = 0; i < row.metrics.size(); ++i)
      cells[static_cast<size_t>(kFixed) + i] = row.metrics[i].value;
    cells += width;
  }
  return table;
}

std::vector<EpochRow> rows_of(const RowTable& table) {
  const at::Tensor& values = table.values;
  std::vector<EpochRow> rows;
  if (!values.defined()) return rows;
  if (values.scalar_type() != at::kDouble || values.dim() != 2 || values.size(1) < kFixed ||
      !values.is_contiguous() || !values.device().is_cpu())
    refuse("is not a table of epochs");
  const auto* cells = values.const_data_ptr<double>();
  rows.reserve(static_cast<size_t>(values.size(0)));
  for (int64_t i = 0; i < values.size(0); ++i)
    rows.push_back(row_from(cells + i * values.size(1), table));
  return rows;
}

at::Tensor tensor_of(const std::string& text) {
  at::Tensor bytes = unaccounted({static_cast<int64_t>(text.size())}, at::kByte);
  std::memcpy(bytes.mutable_data_ptr(), text.data(), text.size());
  return bytes;
}

std::string text_of(const at::Tensor& bytes) {
  if (!bytes.defined() || bytes.scalar_type() != at::kByte || bytes.dim() != 1 ||
      !bytes.is_contiguous() || !bytes.device().is_cpu())
    refuse("is not a contiguous byte tensor on the host");
  return {reinterpret_cast<const char*>(bytes.const_data_ptr<uint8_t>()),
          static_cast<size_t>(bytes.numel())};
}

}  // namespace tare
