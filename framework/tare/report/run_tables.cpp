// Writes and reads the tables of epochs and steps.
#include "tare/report/run_tables.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

#include "tare/base/csv.h"
#include "tare/base/error.h"

namespace tare::report {
namespace {

namespace fs = std::filesystem;

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

/// A CSV file of numbers below one line of names.
class Table {
 public:
  using Names = std::vector<std::string>;

  /// Says what the first number of each row is.
  enum class First { count, any };

  Table(fs::path path, size_t fewest, First first = First::count) : path_(std::move(path)) {
    read_csv(path_, [&](const Names& fields, size_t line) {
      if (line == 1) {
        names_ = fields;
        if (fields.size() < fewest) refuse(line, "has too few columns");
        return;
      }
      if (fields.size() != names_.size()) refuse(line, "has not as many fields as the header");
      auto& row = rows_.emplace_back();
      for (const auto& field : fields) row.push_back(number(field, line));
      if (first == First::any) return;
      const double count = row.front();
      if (!(count >= 0 && count < 0x1p53) || std::trunc(count) != count)
        refuse(line, "does not begin with a whole number");
    });
  }
  [[nodiscard]] const Names& names() const { return names_; }
  /// Each begins with a whole number that an int64_t holds, unless the first may be any.
  [[nodiscard]] const std::vector<std::vector<double>>& rows() const { return rows_; }

 private:
  [[noreturn]] void refuse(size_t line, const char* problem) const {
    throw FormatError("report.read_run", path_.string(), "line " + std::to_string(line), problem);
  }
  [[nodiscard]] double number(const std::string& text, size_t line) const {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      refuse(line, "has text where a number should be");
    return value;
  }

  fs::path path_;
  Names names_;
  std::vector<std::vector<double>> rows_;
};

}  // namespace

const MetricValue* find_metric(const std::vector<MetricValue>& metrics, const std::string& name) {
  const auto found = std::ranges::find(metrics, name, &MetricValue::name);
  return found == metrics.end() ? nullptr : &*found;
}

std::string csv_header(const EpochRow& row) {
  std::string line = "epoch,train_loss,valid_loss";
  for (const auto& metric : row.metrics) line += ',' + csv_field(metric.name);
  return line + ",seconds\n";
}

std::string csv_line(const EpochRow& row) {
  std::string line = std::to_string(row.epoch) + ',' + number_text(row.train_loss) + ',' +
                     number_text(row.valid_loss);
  for (const auto& metric : row.metrics) line += ',' + number_text(metric.value);
  return line + ',' + number_text(row.seconds) + '\n';
}

std::string csv_line(const StepRow& row) {
  return std::to_string(row.step) + ',' + number_text(row.loss) + ',' + number_text(row.lr) + '\n';
}

std::string csv_line(const RateRow& row) {
  return number_text(row.lr) + ',' + number_text(row.loss) + ',' + number_text(row.smoothed) + '\n';
}

std::vector<EpochRow> read_epochs(const fs::path& file) {
  const Table table(file, 4);
  const auto& names = table.names();
  std::vector<EpochRow> rows;
  for (const auto& cells : table.rows()) {
    EpochRow row{.epoch = static_cast<int64_t>(cells[0]),
                 .train_loss = cells[1],
                 .valid_loss = cells[2],
                 .metrics = {},
                 .seconds = cells.back()};
    for (size_t i = 3; i + 1 < cells.size(); ++i) row.metrics.push_back({names[i], cells[i]});
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<StepRow> read_steps(const fs::path& file) {
  const Table table(file, 3);
  std::vector<StepRow> rows;
  for (const auto& cells : table.rows())
    rows.push_back({static_cast<int64_t>(cells[0]), cells[1], cells[2]});
  return rows;
}

std::vector<RateRow> read_rates(const fs::path& file) {
  const Table table(file, 3, Table::First::any);
  std::vector<RateRow> rows;
  for (const auto& cells : table.rows()) rows.push_back({cells[0], cells[1], cells[2]});
  return rows;
}

}  // namespace tare::report
