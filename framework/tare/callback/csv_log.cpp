#include "tare/callback/csv_log.h"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"

namespace tare {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

// Quotes what CSV needs quoted, and defuses what a spreadsheet would take for a formula.
std::string cell(const std::string& text) {
  std::string safe = printable(text);
  if (!safe.empty() && std::string("=+-@").find(safe[0]) != std::string::npos) safe.insert(0, "'");
  if (safe.find_first_of(",\"") == std::string::npos) return safe;
  std::string quoted = "\"";
  for (const char c : safe) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

}  // namespace

Action CsvLog::after_epoch(FitContext& context) {
  const EpochRow& row = context.row;
  header_ = "epoch,train_loss,valid_loss";
  std::string line =
      std::to_string(row.epoch) + ',' + number(row.train_loss) + ',' + number(row.valid_loss);
  for (const auto& m : row.metrics) {
    header_ += ',' + cell(m.name);
    line += ',' + number(m.value);
  }
  header_ += ",seconds\n";
  rows_ += line + ',' + number(row.seconds) + '\n';
  const auto path = context.learner.folder() / file_;
  try {
    io::make_directories(path.parent_path());
    io::write_atomically(path, header_ + rows_);
  } catch (const IoError& error) {  // the next epoch writes all rows again
    log::warning(std::string("the CSV log is not up to date: ") + error.what());
  }
  return Action::proceed;
}

std::string CsvLog::state() const {
  return nlohmann::json{{"header", header_}, {"rows", rows_}}.dump();
}

void CsvLog::load_state(const std::string& json) {
  const auto value = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!value.is_object() || !value.contains("header") || !value.contains("rows") ||
      !value["header"].is_string() || !value["rows"].is_string()) {
    throw FormatError("csv_log.load_state", file_.string(), "header, rows",
                      "are not in the checkpoint's state");
  }
  header_ = value["header"].get<std::string>();
  rows_ = value["rows"].get<std::string>();
}

}  // namespace tare
