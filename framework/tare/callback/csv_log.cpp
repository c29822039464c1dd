// Writes epochs and steps as CSV files.
#include "tare/callback/csv_log.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/callback/registry.h"
#include "tare/report/run_tables.h"

namespace tare {
namespace {

constexpr int64_t kUnread = 64;
static_assert(StepsLog::kRows % 2 == 0);  // so the first step after thinning out is a kept one

void warn(const IoError& error) {
  log::warning(std::string("the CSV log is not up to date: ") + error.what());
}

// Made once, so that a folder that is deleted during the fit stays deleted.
void make_folder_of(const std::filesystem::path& path) {
  try {
    io::make_directories(path.parent_path());
  } catch (const IoError& error) {
    warn(error);
  }
}

double value_of(const EpochRow& row, const std::string& column) {
  const MetricValue* const found = report::find_metric(row.metrics, column);
  return found ? found->value : std::numeric_limits<double>::quiet_NaN();
}

// The next write has all rows again.
void write_log(const std::filesystem::path& path, const std::string& text) {
  try {
    io::write_atomically(path, text);
  } catch (const IoError& error) {
    warn(error);
  }
}

}  // namespace

Action CsvLog::before_fit(FitContext& context) {
  make_folder_of(context.learner.folder() / file_);
  return Action::proceed;
}

Action CsvLog::after_epoch(FitContext& context) {
  EpochRow row = context.row;
  add_columns(row.metrics);
  row.metrics.clear();
  for (const std::string& column : columns_)
    row.metrics.push_back({column, value_of(context.row, column)});
  const std::string header = report::csv_header(row), line = report::csv_line(row);
  if (header != header_) written_ = -1;
  header_ = header;
  rows_ += line;
  write(context.learner.folder() / file_, line);
  return Action::proceed;
}

/// Adds the last line to the file, or writes all of it.
void CsvLog::write(const std::filesystem::path& path, const std::string& line) {
  const auto size = static_cast<int64_t>(header_.size() + rows_.size());
  const int64_t before = std::exchange(written_, -1);  // while an error may leave half a line
  try {
    if (before >= 0) {
      io::File file(path, io::Mode::append);
      if (file.size() == before) {
        if (size > reserved_) {
          constexpr int64_t kAhead = 64 << 10;  // because some file systems go through all blocks
          file.allocate(size + kAhead);
          reserved_ = size + kAhead;
        }
        file.write(line);
        file.flush();
        file.close();
        written_ = size;
        return;
      }
    }
    io::write_atomically(path, header_ + rows_);
    written_ = size;
    reserved_ = 0;
  } catch (const IoError& error) {
    warn(error);
  }
}

void CsvLog::add_columns(const std::vector<MetricValue>& metrics) {
  std::string missing;
  for (const MetricValue& metric : metrics) {
    if (std::ranges::find(columns_, metric.name) != columns_.end()) continue;
    columns_.push_back(metric.name);
    missing += ",nan";
  }
  if (missing.empty()) return;
  // The seconds stay the last column.
  std::string rows;
  for (size_t begin = 0; begin < rows_.size();) {
    const size_t end = rows_.find('\n', begin), last = rows_.rfind(',', end);
    rows += rows_.substr(begin, last - begin) + missing + rows_.substr(last, end + 1 - last);
    begin = end + 1;
  }
  rows_ = std::move(rows);
}

std::string CsvLog::state() const {
  return nlohmann::json{{"header", header_}, {"rows", rows_}, {"columns", columns_}}.dump();
}

void CsvLog::load_state(const std::string& json) {
  const auto value = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  const auto is_name = [](const auto& column) { return column.is_string(); };
  if (!value.is_object() || !value.contains("header") || !value.contains("rows") ||
      !value.contains("columns") || !value["header"].is_string() || !value["rows"].is_string() ||
      !value["columns"].is_array() || !std::ranges::all_of(value["columns"], is_name)) {
    throw FormatError("csv_log.load_state", file_.string(), "header, rows, columns",
                      "are not in the checkpoint's state");
  }
  header_ = value["header"].get<std::string>();
  rows_ = value["rows"].get<std::string>();
  columns_ = value["columns"].get<std::vector<std::string>>();
  written_ = -1;
}

CallbackFacts StepsLog::facts() const {
  return {.files = {file_.string()},
          .only_writes = true,
          .bytes_on_card = kUnread * int64_t{sizeof(double)}};
}

Action StepsLog::before_fit(FitContext& context) {
  make_folder_of(context.learner.folder() / file_);
  const c10::Device device = context.learner.device();
  if (!device.is_cpu())
    losses_ = at::empty({kUnread}, at::TensorOptions(c10::kDouble).device(device));
  return Action::proceed;
}

Action StepsLog::after_step(FitContext& context) {
  if (context.turn + 1 < context.turns) return Action::proceed;  // a row is of a whole step
  if (seen_++ % stride_ != 0) return Action::proceed;
  if (rows_.size() == kRows) thin_out();
  const bool on_host = context.loss.device().is_cpu();
  rows_.push_back({context.step, on_host ? context.loss_value() : 0, context.lr});
  if (on_host) return Action::proceed;
  losses_.select(0, unread_++).copy_(context.loss.detach(), /*non_blocking=*/true);
  if (unread_ == kUnread) read_losses();
  return Action::proceed;
}

void StepsLog::read_losses() const {
  if (unread_ == 0) return;
  const at::Tensor losses = losses_.narrow(0, 0, unread_).to(c10::kCPU);
  const size_t first = rows_.size() - static_cast<size_t>(unread_);
  for (size_t i = 0; i < static_cast<size_t>(unread_); ++i)
    rows_[first + i].loss = losses.const_data_ptr<double>()[i];
  unread_ = 0;
}

void StepsLog::thin_out() {
  read_losses();
  for (size_t i = 0; i < kRows / 2; ++i) rows_[i] = rows_[2 * i];
  rows_.resize(kRows / 2);
  stride_ *= 2;
}

Action StepsLog::after_epoch(FitContext& context) {
  write(context);
  return Action::proceed;
}

Action StepsLog::after_fit(FitContext& context) {
  if (written_ != seen_) write(context);
  losses_.reset();
  return Action::proceed;
}

void StepsLog::write(const FitContext& context) {
  read_losses();
  std::string text = report::kStepsHeader;
  for (const StepRow& row : rows_) text += report::csv_line(row);
  write_log(context.learner.folder() / file_, text);
  written_ = seen_;
}

void StepsLog::account(Ledger& ledger) const {
  if (losses_.defined()) ledger.add(Category::other, "steps_log", losses_);
}

std::string StepsLog::state() const {
  read_losses();
  auto rows = nlohmann::json::array();
  for (const StepRow& row : rows_) rows.push_back({row.step, row.loss, row.lr});
  return nlohmann::json{{"seen", seen_}, {"stride", stride_}, {"rows", rows}}.dump();
}

void StepsLog::load_state(const std::string& json) {
  const auto refuse = [this] {
    throw FormatError("steps_log.load_state", file_.string(), "seen, stride, rows",
                      "are not in the checkpoint's state");
  };
  const auto value = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!value.is_object() || !value.contains("rows") || !value["rows"].is_array()) refuse();
  const auto number_of = [&](const nlohmann::json& entry) {
    if (entry.is_null()) return std::numeric_limits<double>::quiet_NaN();  // as JSON writes it
    if (!entry.is_number()) refuse();
    return entry.get<double>();
  };
  const auto count_of = [&](const char* key) {
    if (!value.contains(key) || !value[key].is_number_integer() || value[key] < 0) refuse();
    return value[key].get<int64_t>();
  };
  const int64_t seen = count_of("seen"), stride = count_of("stride");
  std::vector<StepRow> rows;
  for (const auto& row : value["rows"]) {
    if (!row.is_array() || row.size() != 3 || !row[0].is_number_integer()) refuse();
    rows.push_back({row[0].get<int64_t>(), number_of(row[1]), number_of(row[2])});
  }
  if (stride < 1 || rows.size() > kRows) refuse();
  unread_ = 0;
  rows_ = std::move(rows);
  seen_ = written_ = seen;
  stride_ = stride;
}

namespace {

struct CsvLogOptions {
  std::filesystem::path file = "history.csv";
};
void visit_fields(auto& visit, CsvLogOptions& o) { visit("file", o.file); }

struct StepsLogOptions {
  std::filesystem::path file = "steps.csv";
};
void visit_fields(auto& visit, StepsLogOptions& o) { visit("file", o.file); }

}  // namespace

namespace callbacks {
void add_csv_log(Registry& all) {
  all.add<CsvLogOptions>("csv_log", "writes the table of the epochs as CSV",
                         [](const CsvLogOptions& o) { return std::make_shared<CsvLog>(o.file); });
  all.add<StepsLogOptions>(
      "steps_log", "writes loss and rate of up to 1000 steps as CSV",
      [](const StepsLogOptions& o) { return std::make_shared<StepsLog>(o.file); });
}
}  // namespace callbacks

}  // namespace tare
