// Finds the types of a table's columns, and learns their coding.
#include "tare/data/table_columns.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/config/scalar.h"
#include "tare/data/datasets.h"
#include "tare/data/float_spread.h"
#include "tare/transform/number_hint.h"

namespace tare {
namespace {

constexpr const char* kColumns = "data.make";
constexpr size_t kMostTexts = 65536;        // of a column of categories
constexpr size_t kMostWholeClasses = 20;    // different whole numbers of a target that is a class
constexpr int64_t kNumbersToOneText = 9;    // above, a text among numbers is taken for a mistake
constexpr int64_t kFewestForWarnings = 20;  // rows
constexpr const char* kMend =
    ": mend the field, add its text to missing_values, or the column to categories";

using Names = std::vector<std::string>;

bool contains(const Names& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

void check_names(const TableText& table, const char* field, const Names& given) {
  for (const std::string& name : given)
    if (!contains(table.names(), name))
      throw ConfigError(kColumns, field,
                        "has a name that is no column of " + printable(table.path()) +
                            did_you_mean(name, table.names()),
                        name.find(',') == std::string::npos ? listed(table.names(), 20)
                                                            : "a list, such as [" + name + "]",
                        name);
}

/// Returns what to do about a file of one column, whose separator may be another one.
std::string one_column(const TableText& table) {
  return "has one column only, '" + printable(table.names().front(), 80) +
         "': a table has the target and at least one more column; where another character than "
         "',', ';' and a tab is between the fields, name it in data.separator; a text for a "
         "language model is the data set text";
}

void check_options(const TableText& table, const TableOptions& o) {
  if (table.names().size() == 1 && (!o.target.empty() || !o.targets.empty()))
    throw FormatError("data.table", table.path(), "the table", one_column(table));
  if (!o.target.empty() && !contains(table.names(), o.target))
    throw ConfigError(
        kColumns, "target",
        "is no column of " + printable(table.path()) + did_you_mean(o.target, table.names()),
        listed(table.names(), 20), o.target);
  check_names(table, "targets", o.targets);
  check_names(table, "columns", o.columns);
  check_names(table, "omit", o.omit);
  check_names(table, "categories", o.categories);
  check_names(table, "numbers", o.numbers);
  if (!o.columns.empty() && !o.omit.empty())
    throw ConfigError(kColumns, "omit", "has no effect, because columns lists the inputs",
                      "one of the two", listed(o.omit, 20));
  for (const auto& [field, names] : {std::pair("columns", &o.columns), std::pair("omit", &o.omit)})
    for (const std::string& name : *names)
      if ((!o.target.empty() && name == o.target) || contains(o.targets, name))
        throw ConfigError(kColumns, field, "has the target", "columns of inputs", name);
  if (!o.targets.empty() && !o.target.empty())
    throw ConfigError(kColumns, "targets", "has no place beside target", "one of the two",
                      listed(o.targets, 20));
  for (const std::string& name : o.targets)
    if (std::ranges::count(o.targets, name) > 1 || contains(o.categories, name))
      throw ConfigError(kColumns, "targets", "must be columns of numbers, each once",
                        "other columns, which are no categories", name);
  for (const std::string& name : o.numbers)
    if (contains(o.categories, name))
      throw ConfigError(kColumns, "numbers", "has a column that categories has too",
                        "each column in one of the two", name);
}

Names inputs_of(const TableText& table, const TableOptions& o) {
  if (!o.columns.empty()) return o.columns;
  Names inputs;
  for (const std::string& name : table.names())
    if (name != o.target && !contains(o.targets, name) && !contains(o.omit, name))
      inputs.push_back(name);
  if (inputs.empty())
    throw ConfigError(kColumns, o.targets.empty() ? "target" : "targets",
                      "leaves no column of " + printable(table.path()) + " for the inputs",
                      "a table with at least one more column",
                      o.targets.empty() ? o.target : listed(o.targets, 20));
  return inputs;
}

/// Holds the fields of one column in all files.
class Fields {
 public:
  Fields(const std::vector<TableText>& files, const std::string& name) : files_(files) {
    for (const TableText& file : files) {
      const auto found = std::ranges::find(file.names(), name);
      if (found == file.names().end())
        throw ConfigError(kColumns, "",
                          "'" + printable(file.path()) + "' lacks the column '" + printable(name) +
                              "' of " + printable(files.front().path()),
                          "files with equal columns", "");
      const auto place = static_cast<size_t>(found - file.names().begin());
      for (int64_t row = 0; row < file.rows(); ++row) all_.push_back(file.field(row, place));
    }
  }
  [[nodiscard]] const std::vector<std::string_view>& all() const { return all_; }

  /// Locates a row of all files.
  [[nodiscard]] TableFinding at(size_t row, const std::string& column, std::string problem) const {
    auto left = static_cast<int64_t>(row);
    for (const TableText& file : files_) {
      if (left < file.rows())
        return {.path = file.path(),
                .line = file.line(left),
                .column = column,
                .problem = std::move(problem)};
      left -= file.rows();
    }
    return {.column = column, .problem = std::move(problem)};
  }

 private:
  const std::vector<TableText>& files_;
  std::vector<std::string_view> all_;
};

/// Counts what the fields of a column look like.
struct Looks {
  int64_t numbers = 0, texts = 0, missing = 0;
  int64_t commas = 0, dates = 0;          // among the texts
  std::optional<size_t> comma{}, date{};  // row of the first
  std::vector<size_t> rows_of_texts{};    // in a column of numbers: those that may be mistakes
};

Looks looks_of(const Fields& fields, const TableOptions& o) {
  Looks looks;
  const auto note = [](int64_t& count, std::optional<size_t>& first, size_t row) {
    ++count;
    if (!first) first = row;
  };
  for (size_t row = 0; row < fields.all().size(); ++row) {
    const std::string_view field = fields.all()[row];
    if (is_missing(field, o.missing_values)) {
      ++looks.missing;
    } else if (number_of(field)) {
      ++looks.numbers;
    } else {
      ++looks.texts;
      looks.rows_of_texts.push_back(row);
      const NumberLike like = number_like(field);
      if (like == NumberLike::comma) note(looks.commas, looks.comma, row);
      if (like == NumberLike::date) note(looks.dates, looks.date, row);
    }
  }
  return looks;
}

std::string more_fields(int64_t count) {
  if (count == 0) return "";
  return " and " + format_count(count) + (count == 1 ? " more field" : " more fields");
}

/// Warns of a column of categories whose texts are dates, of which a model learns no order.
void warn_of_dates(const Fields& fields, const std::string& name, const Looks& looks,
                   TableFindings& warnings) {
  if (looks.texts == 0 || looks.dates < looks.texts) return;
  warnings.add(fields.at(
      *looks.date, name,
      "has '" + printable(fields.all()[*looks.date], 50) + "'" + more_fields(looks.dates - 1) +
          " that look like dates, which are read as categories without an order: write numbers, "
          "such as the days since a day of your choice, or add the column to categories or omit"));
}

/// Returns whether the column is one of categories; unset: that cannot be found out, which has been
/// added to the problems.
std::optional<bool> is_category(const Fields& fields, const std::string& name, const Looks& looks,
                                const TableOptions& o, TableFindings& problems) {
  if (contains(o.categories, name)) return true;
  if (contains(o.numbers, name)) return false;
  if (looks.numbers + looks.texts == 0) {
    problems.add({.column = name, .problem = "has no value: add it to omit"});
    return std::nullopt;
  }
  if (looks.texts == 0) return false;
  if (looks.commas == looks.texts) {
    problems.add(fields.at(*looks.comma, name,
                           "has '" + printable(fields.all()[*looks.comma], 50) + "'" +
                               more_fields(looks.commas - 1) +
                               " with a comma: write numbers with a decimal point and without "
                               "commas, or add the column to categories"));
    return std::nullopt;
  }
  if (looks.numbers > kNumbersToOneText * looks.texts) {
    for (const size_t row : looks.rows_of_texts) {
      const std::string_view field = fields.all()[row];
      const bool known = number_like(field) != NumberLike::none;
      problems.add(fields.at(row, name,
                             "has '" + printable(field, 50) + "' in a column with " +
                                 format_count(looks.numbers) +
                                 (looks.numbers == 1 ? " number" : " numbers") + kMend +
                                 (known ? "; " + number_hint(field) : "")));
    }
    return std::nullopt;
  }
  return true;
}

void read_numbers(const Fields& fields, const TableOptions& o, RawColumn& column,
                  TableFindings& problems) {
  column.numbers.reserve(fields.all().size());
  for (size_t row = 0; row < fields.all().size(); ++row) {
    const std::string_view field = fields.all()[row];
    column.numbers.push_back(std::numeric_limits<double>::quiet_NaN());
    if (is_missing(field, o.missing_values)) continue;
    if (const auto value = number_of(field))
      column.numbers.back() = *value;
    else
      problems.add(fields.at(
          row, column.name,
          "has '" + printable(field, 50) + "', which is no finite number: " + number_hint(field)));
  }
}

void read_categories(const Fields& fields, const TableOptions& o, RawColumn& column,
                     TableFindings& problems) {
  std::map<std::string_view, int32_t> codes;
  for (const std::string_view field : fields.all())
    if (!is_missing(field, o.missing_values)) codes.emplace(field, 0);
  if (codes.size() > kMostTexts)
    problems.add({.column = column.name,
                  .problem = "has " + format_count(static_cast<int64_t>(codes.size())) +
                             " different texts, and a category has at most " +
                             format_count(kMostTexts) + ": add the column to omit"});
  for (auto& [text, code] : codes) {
    code = static_cast<int32_t>(column.texts.size());
    column.texts.emplace_back(text);
  }
  column.codes.reserve(fields.all().size());
  for (const std::string_view field : fields.all())
    column.codes.push_back(is_missing(field, o.missing_values) ? -1 : codes.at(field));
}

void warn_of(const RawColumn& column, int64_t rows, TableFindings& warnings) {
  if (rows < kFewestForWarnings) return;
  const auto warn = [&](const std::string& problem) {
    warnings.add({.column = column.name, .problem = problem});
  };
  const auto texts = static_cast<int64_t>(column.texts.size());
  const auto has_words = [](const std::string& text) { return text.find(' ') != text.npos; };
  if (column.category && texts > (rows - column.missing) * 9 / 10)
    warn("has " + format_count(texts) + " different texts in " + format_count(rows) +
         " rows: a model learns nothing from texts that it sees once; add the column to omit" +
         (std::ranges::any_of(column.texts, has_words)
              ? ", or classify its texts by the data set text_list"
              : ""));
  const auto is_new = [&](double value) { return !std::isnan(value); };
  const auto first = std::ranges::find_if(column.numbers, is_new);
  const bool one_number = !column.category && first != column.numbers.end() &&
                          std::ranges::all_of(column.numbers, [&](double value) {
                            return std::isnan(value) || value == *first;
                          });
  if (column.missing == 0 && (one_number || (column.category && texts == 1)))
    warn("has one value in all rows: add it to omit");
}

RawColumn column_of(const Fields& fields, const std::string& name, const TableOptions& o,
                    TableFindings& problems, TableFindings& warnings) {
  const Looks looks = looks_of(fields, o);
  RawColumn column{.name = name, .missing = looks.missing};
  const auto category = is_category(fields, name, looks, o, problems);
  if (!category) return column;
  if (*category && !contains(o.categories, name)) warn_of_dates(fields, name, looks, warnings);
  column.category = *category;
  *category ? read_categories(fields, o, column, problems)
            : read_numbers(fields, o, column, problems);
  return column;
}

std::string whole_text(double value) { return std::to_string(static_cast<int64_t>(value)); }

/// Returns the different values of a target of classes that are whole numbers; empty: it is a
/// number.
std::set<double> whole_classes(const std::vector<double>& values) {
  constexpr double kMostExact = 1e15;
  std::set<double> found;
  for (const double value : values) {
    if (std::isnan(value)) continue;
    if (value != std::floor(value) || std::abs(value) > kMostExact) return {};
    if (found.insert(value).second && found.size() > kMostWholeClasses) return {};
  }
  return found;
}

void add_classes(RawTable& table, const RawColumn& column) {
  table.targets = at::empty({table.rows}, at::kLong);
  int64_t* out = table.targets.mutable_data_ptr<int64_t>();
  if (column.category) {
    table.labels = column.texts;
    for (const int32_t code : column.codes) *out++ = code;
    return;
  }
  const std::set<double> classes = whole_classes(column.numbers);
  for (const double value : classes) table.labels.push_back(whole_text(value));
  for (const double value : column.numbers)
    *out++ = std::distance(classes.begin(), classes.find(value));
}

/// Reads the column of a target. Rows without it are problems.
RawColumn target_column_of(const Fields& fields, const std::string& name, const TableOptions& o,
                           TableFindings& problems, TableFindings& warnings) {
  RawColumn column = column_of(fields, name, o, problems, warnings);
  for (size_t row = 0; row < fields.all().size() && column.missing > 0; ++row)
    if (is_missing(fields.all()[row], o.missing_values))
      problems.add(fields.at(row, name, "is missing, and it is the target: remove the row"));
  return column;
}

/// Adds a problem of numbers that are a target, where there is one.
void check_target(const RawColumn& column, TableFindings& problems) {
  const std::string lost = spread_problem(column.numbers);
  if (!lost.empty()) return problems.add({.column = column.name, .problem = lost});
  const auto [least, most] = std::ranges::minmax(column.numbers);
  if (least == most)
    problems.add({.column = column.name,
                  .problem = "has one value only, " + config::number_text(least) +
                             ", from which a model learns nothing: add rows with another "
                             "value, or choose another target"});
}

/// Adds several targets, columns of numbers or of labels.
void add_targets(RawTable& table, const std::vector<TableText>& files, const TableOptions& options,
                 TableFindings& problems, TableFindings& warnings) {
  TableOptions o = options;
  o.numbers.insert(o.numbers.end(), o.targets.begin(), o.targets.end());
  const int64_t before = problems.count;
  table.target_names = o.targets;
  for (const std::string& name : o.targets)
    table.target_columns.push_back(
        target_column_of(Fields(files, name), name, o, problems, warnings));
  if (problems.count > before) return;
  const bool labels = std::ranges::all_of(table.target_columns, [](const RawColumn& column) {
    return std::ranges::all_of(column.numbers,
                               [](double number) { return number == 0 || number == 1; });
  });
  if (labels) table.labels = o.targets;
  // A label that no row has, or every row, is no reason to refuse the others.
  for (const RawColumn& column : table.target_columns)
    check_target(column, labels && table.target_columns.size() > 1 ? warnings : problems);
  table.targets = at::empty({table.rows, std::ssize(o.targets)}, at::kFloat);
  float* out = table.targets.mutable_data_ptr<float>();
  for (size_t row = 0; row < static_cast<size_t>(table.rows); ++row)
    for (const RawColumn& column : table.target_columns)
      *out++ = static_cast<float>(column.numbers[row]);
}

/// Adds the target. Rows without one are problems.
void add_target(RawTable& table, const std::vector<TableText>& files, const TableOptions& o,
                TableFindings& problems, TableFindings& warnings) {
  const Fields fields(files, o.target);
  const int64_t before = problems.count;
  table.target_columns.push_back(target_column_of(fields, o.target, o, problems, warnings));
  const RawColumn& column = table.target_columns.back();
  table.target = o.target;
  if (problems.count > before) return;
  const bool number =
      !column.category && (contains(o.numbers, o.target) || whole_classes(column.numbers).empty());
  if (!number) {
    add_classes(table, column);
    if (table.labels.size() < 2)
      problems.add({.column = o.target,
                    .problem = "has one class only, '" + printable(table.labels.front(), 50) +
                               "', from which a model learns nothing: add rows of another class, "
                               "or choose another target"});
    return;
  }
  const int64_t good = problems.count;
  check_target(column, problems);
  if (problems.count > good) return;
  table.targets = at::empty({table.rows, 1}, at::kFloat);
  float* out = table.targets.mutable_data_ptr<float>();
  for (const double value : column.numbers) *out++ = static_cast<float>(value);
}

double median_of(std::vector<double> values) {
  const size_t middle = values.size() / 2;
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(middle));
  const double upper = values[middle];
  if (values.size() % 2 == 1) return upper;
  return (*std::max_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle)) +
          upper) /
         2;
}

struct Moments {
  double mean = 0, deviation = 0;
};

// In two passes, which rounds little.
Moments moments_of(const std::vector<double>& values) {
  Moments moments;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) moments.mean += value / count;
  double squares = 0;
  for (const double value : values)
    squares += (value - moments.mean) * (value - moments.mean) / count;
  moments.deviation = std::sqrt(squares);
  return moments;
}

// A column of one value has no deviation but for rounding.
double divisor(const Moments& moments) {
  constexpr double kLeast = 1e-12;
  return moments.deviation > kLeast * std::abs(moments.mean) && moments.deviation > 0
             ? moments.deviation
             : 1;
}

ColumnCoding learn_numbers(const RawColumn& column, std::span<const int64_t> rows,
                           const std::string& fill) {
  ColumnCoding coding{.name = column.name};
  std::vector<double> values;
  for (const int64_t row : rows)
    if (const double value = column.numbers[static_cast<size_t>(row)]; !std::isnan(value))
      values.push_back(value);
  if (values.empty())
    throw ConfigError(kColumns, "omit",
                      "lacks the column '" + printable(column.name) +
                          "', which has no number in the training split",
                      "", "");
  coding.missing = fill == "mean" ? moments_of(values).mean : median_of(values);
  values.resize(rows.size(), coding.missing);
  const Moments moments = moments_of(values);
  coding.mean = moments.mean;
  coding.deviation = divisor(moments);
  return coding;
}

ColumnCoding learn_texts(const RawColumn& column, std::span<const int64_t> rows) {
  ColumnCoding coding{.name = column.name, .kind = "category"};
  std::set<int32_t> seen;
  for (const int64_t row : rows) seen.insert(column.codes[static_cast<size_t>(row)]);
  seen.erase(-1);
  for (const int32_t code : seen) coding.texts.push_back(column.texts[static_cast<size_t>(code)]);
  return coding;
}

/// Fills one column of the samples.
void encode(const RawColumn& column, const ColumnCoding& coding, std::span<const int64_t> rows,
            float* out, int64_t step) {
  std::vector<float> codes;
  for (const std::string& text : column.texts)
    codes.push_back(static_cast<float>(code_of(coding, text)));
  for (const int64_t at : rows) {
    const auto row = static_cast<size_t>(at);
    if (column.category) {
      const int32_t code = column.codes[row];
      *out = code < 0 ? static_cast<float>(kMissingCode) : codes[static_cast<size_t>(code)];
    } else {
      const double value = column.numbers[row];
      *out = normalised(coding, std::isnan(value) ? coding.missing : value);
    }
    out += step;
  }
}

}  // namespace

TableOptions table_options(const DataOptions& o) {
  return {.target = o.target,
          .targets = o.targets,
          .columns = o.columns,
          .omit = o.omit,
          .categories = o.categories,
          .numbers = o.numbers,
          .missing_values = o.missing_values};
}

RawTable raw_table(const std::vector<TableText>& files, const TableOptions& options,
                   TableFindings& problems, TableFindings& warnings) {
  check_options(files.front(), options);
  RawTable table{};
  for (const TableText& file : files) table.rows += file.rows();
  if (table.rows == 0) return table;  // no line could be read, which is a problem already
  if (files.front().names().size() == 1) warnings.add({.problem = one_column(files.front())});
  for (const std::string& name : inputs_of(files.front(), options)) {
    table.inputs.push_back(column_of(Fields(files, name), name, options, problems, warnings));
    warn_of(table.inputs.back(), table.rows, warnings);
  }
  std::ranges::stable_partition(table.inputs, &RawColumn::category);
  if (!options.target.empty()) add_target(table, files, options, problems, warnings);
  if (!options.targets.empty()) add_targets(table, files, options, problems, warnings);
  return table;
}

RowCoding learn_coding(const RawTable& table, std::span<const int64_t> rows,
                       const std::string& fill) {
  RowCoding coding{.target = table.target, .targets = table.target_names};
  for (const RawColumn& column : table.inputs)
    coding.columns.push_back(column.category ? learn_texts(column, rows)
                                             : learn_numbers(column, rows, fill));
  const bool numbers = table.targets.defined() && table.targets.is_floating_point();
  if (!numbers || !table.labels.empty()) return coding;
  const int64_t columns = table.targets.size(1);
  const auto learn = [&](int64_t column) {
    std::vector<double> values;
    const float* targets = table.targets.const_data_ptr<float>() + column;
    for (const int64_t row : rows) values.push_back(static_cast<double>(targets[row * columns]));
    const Moments moments = moments_of(values);
    return Moments{.mean = moments.mean, .deviation = divisor(moments)};
  };
  if (coding.targets.empty()) {
    const Moments moments = learn(0);
    coding.target_mean = moments.mean;
    coding.target_deviation = moments.deviation;
  }
  for (int64_t column = 0; column < std::ssize(coding.targets); ++column) {
    const Moments moments = learn(column);
    coding.target_means.push_back(moments.mean);
    coding.target_deviations.push_back(moments.deviation);
  }
  return coding;
}

at::Tensor encoded(const RawTable& table, const RowCoding& coding, std::span<const int64_t> rows) {
  const auto columns = static_cast<int64_t>(table.inputs.size());
  at::Tensor samples = at::empty({static_cast<int64_t>(rows.size()), columns}, at::kFloat);
  float* out = samples.mutable_data_ptr<float>();
  for (size_t i = 0; i < table.inputs.size(); ++i)
    encode(table.inputs[i], coding.columns[i], rows, out + i, columns);
  return samples;
}

}  // namespace tare
