// Reads tables of texts as sequences of bytes.
#include "tare/data/text_list.h"

#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <set>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/data/check_command.h"
#include "tare/data/datasets.h"
#include "tare/data/table_check.h"
#include "tare/data/text_bytes.h"
#include "tare/data/text_check.h"

namespace tare {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLabel = "label";  // the column of the classes where none is named

/// Returns the place of a column. Throws ConfigError where the table lacks it.
size_t column_of(const TableText& table, const char* field, const std::string& name) {
  const auto found = std::ranges::find(table.names(), name);
  if (found != table.names().end()) return static_cast<size_t>(found - table.names().begin());
  if (field == std::string("columns") && name == TextListOptions{}.text)  // none was named
    throw ConfigError("data.make", field,
                      "must name the column of the texts, because " + printable(table.path()) +
                          " has no column 'text'" + did_you_mean(name, table.names()),
                      listed(table.names(), 20), "");
  throw ConfigError(
      "data.make", field,
      "is no column of " + printable(table.path()) + did_you_mean(name, table.names()),
      listed(table.names(), 20), name);
}

/// Holds a file and the places of its columns.
struct Texts {
  Texts(const fs::path& file, const TextListOptions& options, TableFindings& problems)
      : table(read_table(file, {}, &problems)), text(column_of(table, "columns", options.text)) {
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

std::vector<std::string> labels_of(const Texts& texts) {
  std::set<std::string> labels;
  for (int64_t row = 0; texts.has_labels && row < texts.table.rows(); ++row)
    labels.emplace(texts.table.field(row, texts.label));
  labels.erase("");  // which is a problem of its row
  return {labels.begin(), labels.end()};
}

/// Reads the rows of all files.
class ListReader {
 public:
  ListReader(const TextListOptions& options, TableFindings& problems)
      : options_(options), problems_(problems) {}

  Splits read(const fs::path& file) {
    const Texts first(file, options_, problems_);
    has_labels_ = first.has_labels;
    labels_ = labels_of(first);
    counts_.resize(labels_.size());
    std::vector<Batch> samples;
    std::vector<std::string> names;
    add_samples(first, samples, names);
    Splits splits;
    splits.train = made(std::move(samples), names);
    splits.valid = part(options_.valid_files);
    splits.test = part(options_.test_files);
    return splits;
  }

  /// Returns the classes and how many texts of each there are.
  [[nodiscard]] std::vector<TextClass> classes() const {
    std::vector<TextClass> all;
    for (size_t i = 0; i < labels_.size(); ++i) all.push_back({labels_[i], counts_[i]});
    return all;
  }
  /// Returns the number of texts without a problem.
  [[nodiscard]] int64_t texts() const { return texts_; }

 private:
  [[nodiscard]] DatasetPtr made(std::vector<Batch> samples,
                                const std::vector<std::string>& names) const {
    if (samples.empty()) return nullptr;
    return sample_dataset(std::move(samples), options_.collate, labels_, names, options_.length);
  }

  DatasetPtr part(const std::vector<fs::path>& files) {
    std::vector<Batch> samples;
    std::vector<std::string> names;
    for (const fs::path& file : files)
      add_samples(Texts(file, options_, problems_), samples, names);
    return made(std::move(samples), names);
  }

  /// Returns what is wrong with a row, and its class where the texts have classes; empty: nothing.
  std::string read_row(const Texts& texts, int64_t row, int64_t& label) const {
    if (texts.table.field(row, texts.text).empty()) return "has no text: remove the row";
    if (!has_labels_) return {};
    const std::string name(texts.table.field(row, texts.label));
    if (name.empty()) return "has no label; give every text one, or remove the row";
    const auto place = std::ranges::lower_bound(labels_, name);
    if (place == labels_.end() || *place != name)
      return "has the class '" + printable(name) + "', which no text of the training has" +
             did_you_mean(name, labels_);
    label = place - labels_.begin();
    return {};
  }

  /// Adds the rows of a file to the samples, and their places to the names.
  void add_samples(const Texts& texts, std::vector<Batch>& samples,
                   std::vector<std::string>& names) {
    const std::string name = fs::path(texts.table.path()).filename().string();
    if (texts.has_labels != has_labels_)
      throw ConfigError("data.make", "target",
                        "is a column that not every file has: " + printable(texts.table.path()),
                        "files with equal columns", "");
    for (int64_t row = 0; row < texts.table.rows(); ++row) {
      int64_t label = 0;
      const std::string problem = read_row(texts, row, label);
      if (!problem.empty()) {
        problems_.add(
            {.path = texts.table.path(), .line = texts.table.line(row), .problem = problem});
        continue;
      }
      const std::string text(texts.table.field(row, texts.text));
      Batch sample({{options_.text, bytes_of(text, options_.length)}}, {});
      if (has_labels_) {
        sample.targets.push_back({kLabel, at::scalar_tensor(label, at::kLong)});
        ++counts_[static_cast<size_t>(label)];
      }
      ++texts_;
      samples.push_back(std::move(sample));
      names.push_back(name + ':' + std::to_string(texts.table.line(row)));
    }
  }

  const TextListOptions& options_;
  TableFindings& problems_;
  bool has_labels_ = false;
  std::vector<std::string> labels_;
  std::vector<int64_t> counts_;
  int64_t texts_ = 0;
};

/// Throws the first problem with what a message says of the others.
void refuse_findings(const TableFindings& problems, const std::string& others) {
  if (problems.count == 0) return;
  const TableFinding& first = problems.list.front();
  throw FormatError("data.text_list", first.path, "line " + std::to_string(first.line),
                    first.problem + others);
}

/// Returns the options of the data set as those of text_list().
TextListOptions list_options(const DataOptions& o) {
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
  return options;
}

}  // namespace

Splits text_list(const fs::path& file, const TextListOptions& options) {
  TableFindings problems;
  Splits splits = ListReader(options, problems).read(file);
  refuse_findings(problems, "; wrong lines: " + format_count(problems.count));
  return splits;
}

TextCheck check_text_list(const DataOptions& o) {
  datasets::check_files(o);
  const TextListOptions options = list_options(o);
  TextCheck check;
  ListReader reader(options, check.problems);
  (void)reader.read(o.file);
  check.classes = reader.classes();
  check.texts = reader.texts();
  return check;
}

}  // namespace tare

namespace tare::datasets {
namespace {

Found list_of_texts(const DataOptions& o, bool) {
  const TextListOptions options = list_options(o);
  TableFindings problems;
  Splits splits = ListReader(options, problems).read(o.file);
  refuse_findings(problems, more_problems(problems.count - 1, o));
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
        .make = list_of_texts,
        .images = false};
  });
}

}  // namespace tare::datasets
