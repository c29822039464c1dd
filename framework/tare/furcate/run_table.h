// run_data.csv as furcate's users know it: a row for each run, made from its run_data.json, and the
// rows that are there already. Internal.
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
  /// Reads the runs' folders and the run_data.csv in `log_dir`.
  explicit RunTable(std::filesystem::path log_dir) : log_dir_(std::move(log_dir)) {}

  /// Returns runs that are complete or pruned, as CSV: every key of the configuration, `meta` as
  /// text without its data, and each of the data as run_<key>. Columns in the order of the first
  /// row, then what others have more; empty where a run has none. Values as Python writes them,
  /// null and NaN empty. A run whose run_data.json is not there, or no such file, keeps the row
  /// that the run_data.csv before the first call has for it, with its very fields; without one it
  /// has no row yet. Rows of that file for other runs, unless they have failed, stay behind these.
  /// Each file is read once. Throws IoError.
  [[nodiscard]] std::string text(const std::vector<sweep::Trial>& ended);

 private:
  using Row = std::vector<std::pair<std::string, std::string>>;  // columns and fields, as written

  void read_earlier();
  [[nodiscard]] std::vector<const Row*> rows_of(const std::vector<sweep::Trial>& ended);

  std::filesystem::path log_dir_;
  std::map<int64_t, Row> rows_;  // by number
  bool has_read_earlier_ = false;
  std::vector<std::string> earlier_names_;  // in the order of the file
  std::map<std::string, Row> earlier_;      // by the name of the run
};

}  // namespace tare::furcate
