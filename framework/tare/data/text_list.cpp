// Reads tables of texts as sequences of bytes.
#include "tare/data/text_list.h"

#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <set>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/data/datasets.h"
#include "tare/data/table_check.h"
#include "tare/data/text_bytes.h"

namespace tare {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLabel = "label";  // the column of the classes where none is named

/// Returns the place of a column. Throws ConfigError where the table lacks it.
size_t column_of(const TableText& table, const char* field, const std::string& name) {
  const auto found = std::ranges::find(table.names(), name);
  if (found != table.names().end()) return static_cast<size_t>(found - table.names().begin());
  throw ConfigError(
      "data.make", field,
      "is no column of " + printable(table.path()) + did_you_mean(name, table.names()),
      listed(table.names(), 20), name);
}

/// Holds a file and the places of its columns.
struct Texts {
  Texts(const fs::path& file, const TextListOptions& options)
      : table(read_table(file)), text(column_of(table, "columns", options.text)) {
    const bool has_default = std::ranges::find(table.names(), kLabel) != table.names().end();
    has_labels = !options.label.empty() || has_default;
    if (has_labels)
      label = column_of(table, "target", options.label.empty() ? kLabel : options.label);
    if (has_labels && label == text)
      throw ConfigError("data.make", "target", "is the column of the texts too", "another column",
                        options.text);
  }
  TableText table;
  size_t text = 0, label = 0;
  bool has_labels = false;
};

[[noreturn]] void refuse(const Texts& texts, int64_t row, const std::string& problem) {
  throw FormatError("data.text_list", texts.table.path(),
                    "line " + std::to_string(texts.table.line(row)), problem);
}

std::vector<std::string> labels_of(const Texts& texts) {
  std::set<std::string> labels;
  for (int64_t row = 0; texts.has_labels && row < texts.table.rows(); ++row) {
    if (texts.table.field(row, texts.label).empty())
      refuse(texts, row, "has no label; give every text one, or remove the row");
    labels.emplace(texts.table.field(row, texts.label));
  }
  return {labels.begin(), labels.end()};
}

/// Adds the rows of a file to the samples, and their places to the names.
void add_samples(const Texts& texts, const std::vector<std::string>& labels,
                 const TextListOptions& options, std::vector<Batch>& samples,
                 std::vector<std::string>& names) {
  const std::string name = fs::path(texts.table.path()).filename().string();
  if (texts.has_labels == labels.empty())
    throw ConfigError("data.make", "target",
                      "is a column that not every file has: " + printable(texts.table.path()),
                      "files with equal columns", "");
  for (int64_t row = 0; row < texts.table.rows(); ++row) {
    const std::string text(texts.table.field(row, texts.text));
    if (text.empty()) refuse(texts, row, "has no text: remove the row");
    Batch sample({{options.text, bytes_of(text, options.length)}}, {});
    if (texts.has_labels) {
      const std::string label(texts.table.field(row, texts.label));
      const auto place = std::ranges::lower_bound(labels, label);
      if (place == labels.end() || *place != label)
        refuse(texts, row,
               "has the class '" + printable(label) + "', which no text of the training has" +
                   did_you_mean(label, labels));
      sample.targets.push_back({kLabel, at::scalar_tensor(place - labels.begin(), at::kLong)});
    }
    samples.push_back(std::move(sample));
    names.push_back(name + ':' + std::to_string(texts.table.line(row)));
  }
}

}  // namespace

Splits text_list(const fs::path& file, const TextListOptions& options) {
  const Texts first(file, options);
  const std::vector<std::string> labels = labels_of(first);
  const auto made = [&](std::vector<Batch> samples, const std::vector<std::string>& names) {
    return sample_dataset(std::move(samples), options.collate, labels, names, options.length);
  };
  const auto part = [&](const std::vector<fs::path>& files) -> DatasetPtr {
    std::vector<Batch> samples;
    std::vector<std::string> names;
    for (const fs::path& other : files)
      add_samples(Texts(other, options), labels, options, samples, names);
    return samples.empty() ? nullptr : made(std::move(samples), names);
  };
  std::vector<Batch> samples;
  std::vector<std::string> names;
  add_samples(first, labels, options, samples, names);
  return {.train = made(std::move(samples), names),
          .valid = part(options.valid_files),
          .test = part(options.test_files)};
}

}  // namespace tare

namespace tare::datasets {
namespace {

Found list(const DataOptions& o, bool) {
  if (o.file.empty())
    throw ConfigError("data.make", "file", "is needed by the data set text_list",
                      "a CSV or JSON lines file with the columns text and label", "");
  if (o.columns.size() > 1)
    throw ConfigError("data.make", "columns", "has several columns, and a sample is one text",
                      "the name of one column of texts", listed(o.columns, 20));
  (void)table_paths(o);  // refuses a file that is given twice
  TextListOptions options{.label = o.target,
                          .length = o.length,
                          .collate = collate_of_texts(o),
                          .valid_files = {o.valid_files.begin(), o.valid_files.end()},
                          .test_files = {o.test_files.begin(), o.test_files.end()}};
  if (!o.columns.empty()) options.text = o.columns.front();
  Splits splits = text_list(o.file, options);
  return {.description = format_count(splits.train->size()) + " texts of " + printable(o.file),
          .data = std::move(splits.train),
          .valid = std::move(splits.valid),
          .test = std::move(splits.test)};
}

}  // namespace

void add_text_list(Registry& all) {
  all.add("text_list", "reads texts and their classes as bytes from the rows of a table", [] {
    return Kind{
        .fields = {"file", "columns", "target", "length", "collate", "valid_files", "test_files"},
        .make = list,
        .images = false};
  });
}

}  // namespace tare::datasets
