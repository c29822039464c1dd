// CsvLog: the epochs table as a CSV file.
#pragma once

#include <filesystem>
#include <string>

#include "tare/callback/callback.h"

namespace tare {

/// Writes `file` (relative paths: below the Learner's folder) with the columns epoch, train_loss,
/// valid_loss, each metric, seconds. The whole file is replaced atomically after each epoch, so it
/// never holds half a row; a resumed run writes the rows of its checkpoint again. An IoError is
/// logged as a warning and training continues; the next epoch writes all rows. Numbers are written
/// so that reading them gives the same bits.
class CsvLog final : public Callback {
 public:
  explicit CsvLog(std::filesystem::path file = "history.csv") : file_(std::move(file)) {}

  [[nodiscard]] std::string name() const override { return "csv_log:" + file_.string(); }
  Action after_epoch(FitContext& context) override;
  [[nodiscard]] std::string state() const override;
  void load_state(const std::string& json) override;

 private:
  std::filesystem::path file_;
  std::string header_, rows_;
};

}  // namespace tare
