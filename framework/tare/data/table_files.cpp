// Reads the rows of CSV files and JSON lines as data sets.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "tare/base/bytes.h"
#include "tare/base/content_hash.h"
#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/data/check_command.h"
#include "tare/data/datasets.h"
#include "tare/data/gather.h"
#include "tare/data/row_source.h"
#include "tare/data/table_check.h"
#include "tare/data/table_columns.h"
#include "tare/data/tensor_dataset.h"

namespace tare {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNames = 8;  // in a description

/// Holds what the rows of all splits share.
struct SharedRows {
  RawTable table{};
  std::vector<std::string> places{};  // "house.csv:7" for each row
  DataOptions options{};
};
using SharedRowsPtr = std::shared_ptr<const SharedRows>;

template <class T>
std::span<const std::byte> memory_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

/// Gives the numbers of rows, from which the samples are made once the training split is known.
class RawRows final : public Dataset {
 public:
  RawRows(SharedRowsPtr shared, int64_t first, int64_t count)
      : shared_(std::move(shared)), first_(first), count_(count) {}
  [[nodiscard]] int64_t size() const override { return count_; }
  [[nodiscard]] Batch get(const BatchRequest& request) const override {
    check_indices(request.indices, count_);
    at::Tensor rows = at::empty({static_cast<int64_t>(request.indices.size())}, at::kLong);
    int64_t* out = rows.mutable_data_ptr<int64_t>();
    for (const int64_t index : request.indices) *out++ = first_ + index;
    return {rows};
  }
  [[nodiscard]] std::vector<int64_t> sample_shape() const override {
    return {static_cast<int64_t>(shared_->table.inputs.size())};
  }
  [[nodiscard]] std::vector<std::string> labels() const override { return shared_->table.labels; }
  [[nodiscard]] at::Tensor targets() const override {
    return shared_->table.targets.narrow(0, first_, count_).contiguous();
  }
  // The hash of all files: they are read together.
  [[nodiscard]] std::string content() const override {
    std::string all;
    for (const RawColumn& column : shared_->table.inputs) {
      all += column.name + '\0' + content_hash(memory_of(column.numbers)) +
             content_hash(memory_of(column.codes));
      for (const std::string& text : column.texts) all += text + '\0';
    }
    return content_hash(std::as_bytes(std::span(all)));
  }

 private:
  SharedRowsPtr shared_;
  int64_t first_, count_;
};

/// Gives coded rows.
class CodedRows final : public Dataset, public RowSource {
 public:
  CodedRows(const SharedRows& shared, RowCoding coding, const std::vector<int64_t>& rows)
      : coding_(std::move(coding)) {
    auto names = std::make_shared<std::vector<std::string>>();
    for (const int64_t row : rows) names->push_back(shared.places[static_cast<size_t>(row)]);
    const Batch all(encoded(shared.table, coding_, rows), gather_rows(shared.table.targets, rows));
    rows_ = std::make_shared<TensorDataset>(all.inputs, all.targets, shared.table.labels,
                                            Transforms{}, std::move(names));
  }
  [[nodiscard]] int64_t size() const override { return rows_->size(); }
  [[nodiscard]] Batch get(const BatchRequest& request) const override {
    return rows_->get(request);
  }
  [[nodiscard]] std::vector<int64_t> sample_shape() const override { return rows_->sample_shape(); }
  [[nodiscard]] std::string sample_name(int64_t index) const override {
    return rows_->sample_name(index);
  }
  [[nodiscard]] std::vector<std::string> labels() const override { return rows_->labels(); }
  [[nodiscard]] at::Tensor targets() const override { return rows_->targets(); }
  [[nodiscard]] const RowCoding* row_coding() const override { return &coding_; }
  /// Returns all samples, float32 [rows, columns].
  [[nodiscard]] const at::Tensor& samples() const { return rows_->raw_input(); }
  [[nodiscard]] bool in_memory() const override { return true; }
  [[nodiscard]] std::string content() const override { return rows_->content(); }
  void account(Ledger& ledger) const override { rows_->account(ledger); }

 private:
  RowCoding coding_;
  std::shared_ptr<const TensorDataset> rows_;
};

std::vector<int64_t> rows_of(const Dataset& raw) {
  std::vector<int64_t> all(static_cast<size_t>(raw.size()));
  std::iota(all.begin(), all.end(), int64_t{0});
  const at::Tensor rows = raw.get({.indices = all}).input();
  const int64_t* first = rows.const_data_ptr<int64_t>();
  return {first, first + rows.numel()};
}

/// Warns of rows with categories that the training split does not have.
void warn_of_unknown(const RowCoding& coding, const at::Tensor& samples, const std::string& file,
                     const char* split) {
  const auto columns = samples.size(1), categories = std::ssize(coding.categories());
  const float* row = samples.const_data_ptr<float>();
  std::vector<int64_t> fields(static_cast<size_t>(categories));
  int64_t rows = 0;
  for (int64_t i = 0; i < samples.size(0); ++i, row += columns) {
    bool any = false;
    for (int64_t column = 0; column < categories; ++column) {
      const bool is_unknown = row[column] == static_cast<float>(kUnknownCode);
      fields[static_cast<size_t>(column)] += is_unknown ? 1 : 0;
      any |= is_unknown;
    }
    rows += any ? 1 : 0;
  }
  if (rows == 0) return;
  std::vector<std::string> names;
  for (size_t column = 0; column < fields.size(); ++column)
    if (fields[column] > 0) names.push_back(coding.columns[column].name);
  log::warning_once(printable(file, 1000) + ": " + format_count(rows) + " of the " +
                    format_count(samples.size(0)) + " rows of the " + split +
                    " split have a category that no row of the training split has, in " +
                    listed(names, kMostNames) + ": the model takes each as unknown");
}

Splits coded(const SharedRowsPtr& shared, const Splits& raw) {
  if (!raw.train)
    throw ConfigError("data.make", "train",
                      "leaves no training split, from which the coding of the columns is learnt",
                      "a part above 0", "0");
  const DataOptions& o = shared->options;
  RowCoding coding = learn_coding(shared->table, rows_of(*raw.train), o.fill);
  coding.missing_values = o.missing_values;
  coding.separator = o.separator;
  coding.header = o.header;
  const auto part = [&](const DatasetPtr& data, const char* split) -> DatasetPtr {
    if (!data) return nullptr;
    auto rows = std::make_shared<CodedRows>(*shared, coding, rows_of(*data));
    std::vector<std::string> files{o.file};
    if (data == raw.valid && !o.valid_files.empty()) files = o.valid_files;
    if (data == raw.test && !o.test_files.empty()) files = o.test_files;
    warn_of_unknown(coding, rows->samples(), listed(files, 3), split);
    return rows;
  };
  return {part(raw.train, "training"), part(raw.valid, "validation"), part(raw.test, "test")};
}

/// Throws the first problem, and says how many there are.
void refuse(const TableFindings& problems, const DataOptions& options) {
  if (problems.count == 0) return;
  TableFinding finding = problems.list.front();
  const std::string path = finding.path.empty() ? options.file : finding.path;
  const std::string part = finding.line > 0 ? "line " + std::to_string(finding.line) : "the table";
  finding.line = 0;
  throw FormatError("data.table", path, part,
                    text_of(finding) + more_problems(problems.count - 1, options));
}

std::string names_of(const std::vector<RawColumn>& columns, bool category) {
  std::vector<std::string> names;
  for (const RawColumn& column : columns)
    if (column.category == category) names.push_back(column.name);
  const std::string what = category ? "categories" : "numbers";
  return names.empty() ? "no " + what : what + " " + listed(names, kMostNames);
}

std::string description_of(const RawTable& table, const std::string& file) {
  std::string target = "target " + printable(table.target) + ", ";
  if (!table.target_names.empty())
    target =
        (table.labels.empty() ? "targets " : "labels ") + listed(table.target_names, kMostNames);
  else if (table.labels.empty())
    target += "a number";
  else
    target += format_count(static_cast<int64_t>(table.labels.size())) + " classes";
  return format_count(table.rows) + " rows of " + printable(file) + " (" +
         names_of(table.inputs, true) + "; " + names_of(table.inputs, false) + "; " + target + ")";
}

datasets::Found read(const DataOptions& o, const std::string& kind) {
  const auto need = [&](const char* field, const char* allowed) {
    throw ConfigError("data.make", field, "is needed by the data set " + kind, allowed, "");
  };
  if (o.file.empty()) need("file", "the file of a table");
  if (o.target.empty() && o.targets.empty())
    need("target", "the name of the column to predict, or targets with those of several");
  const std::vector<fs::path> paths = table_paths(o);
  const TableFormat format{.kind = kind, .separator = o.separator, .header = o.header};
  std::vector<TableText> files;
  TableFindings problems, warnings;
  for (const fs::path& path : paths) files.push_back(read_table(path, format, &problems));
  auto shared = std::make_shared<SharedRows>();
  shared->table = raw_table(files, table_options(o), problems, warnings);
  refuse(problems, o);
  shared->table.target_columns.clear();  // their values are what a data set needs
  for (const TableFinding& finding : warnings.list)
    log::warning_once(printable(o.file) + ": " + text_of(finding));
  shared->options = o;
  std::vector<int64_t> counts;
  datasets::Found found{.description = description_of(shared->table, o.file)};
  for (const TableText& file : files) {
    const std::string name = fs::path(file.path()).filename().string();
    for (int64_t row = 0; row < file.rows(); ++row)
      shared->places.push_back(name + ':' + std::to_string(file.line(row)));
    counts.push_back(file.rows());
  }
  int64_t first = 0;
  size_t file = 0;
  const auto part = [&](size_t number) -> DatasetPtr {
    int64_t count = 0;
    for (const size_t end = file + number; file < end; ++file) count += counts[file];
    if (count == 0) return nullptr;
    first += count;
    return std::make_shared<RawRows>(shared, first - count, count);
  };
  found.data = part(1);
  found.valid = part(o.valid_files.size());
  found.test = part(o.test_files.size());
  found.finish = [shared = SharedRowsPtr(shared)](const Splits& raw) { return coded(shared, raw); };
  return found;
}

}  // namespace
}  // namespace tare

namespace tare::datasets {

void add_table_files(Registry& all) {
  const std::vector<std::string> fields{"file", "target",      "targets",   "columns",
                                        "omit", "categories",  "numbers",   "missing_values",
                                        "fill", "valid_files", "test_files"};
  all.add("csv", "reads the rows of a table with commas, semicolons or tabs between the fields",
          [fields] {
            Kind kind{.fields = fields, .images = false};
            kind.fields.insert(kind.fields.end(), {"separator", "header"});
            kind.make = [](const DataOptions& o, bool) { return read(o, "csv"); };
            return kind;
          });
  all.add("jsonl", "reads the rows of a table from a file with a JSON object on each line",
          [fields] {
            return Kind{.fields = fields,
                        .make = [](const DataOptions& o, bool) { return read(o, "jsonl"); },
                        .images = false};
          });
}

}  // namespace tare::datasets
