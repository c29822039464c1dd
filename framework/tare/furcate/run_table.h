// run_data.csv as furcate's users know it: a row for each run, made from its run_data.json.
// Internal.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tare/sweep/trial.h"

namespace tare::furcate {

class RunTable {
 public:
  /// Reads the runs' folders in `log_dir`.
  explicit RunTable(std::filesystem::path log_dir) : log_dir_(std::move(log_dir)) {}

  /// Returns runs that are complete or pruned, as CSV: every key of the configuration, `meta` as
  /// text without its data, and each of the data as run_<key>. Columns in the order of the first
  /// row, then what others have more; empty where a run has none. Values as Python writes them,
  /// null and NaN empty. A run whose run_data.json is not there, or no such file, has no row yet;
  /// each is read once.
  [[nodiscard]] std::string text(const std::vector<sweep::Trial>& ended);

 private:
  using Row = std::vector<std::pair<std::string, std::string>>;  // columns and fields

  std::filesystem::path log_dir_;
  std::map<int64_t, Row> rows_;  // by number
};

}  // namespace tare::furcate
