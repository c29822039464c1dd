// CsvLog and StepsLog: the epochs and the steps of a fit as CSV files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tare/callback/callback.h"

namespace tare {

/// Writes `file` (relative paths: below the Learner's folder) with the columns epoch, train_loss,
/// valid_loss, each metric, seconds; where an epoch has no such metric, "nan". Each epoch adds its
/// row at the end, once the disk has space for it. The whole file is replaced atomically where an
/// epoch brings new columns, where a resumed run begins, and where another program has changed the
/// file's size. An IoError is logged as a warning and training continues; the next epoch writes all
/// rows. The file's folder is made when the fit begins, and not again. Numbers are
/// written so that reading them gives the same bits.
class CsvLog final : public Callback {
 public:
  /// Takes `file` relative to the Learner's folder, if it is not absolute.
  explicit CsvLog(std::filesystem::path file = "history.csv") : file_(std::move(file)) {}

  [[nodiscard]] std::string name() const override { return "csv_log:" + file_.string(); }
  [[nodiscard]] CallbackFacts facts() const override {
    return {.files = {file_.string()}, .logs = true, .only_writes = true};
  }
  Action before_fit(FitContext& context) override;
  Action after_epoch(FitContext& context) override;
  [[nodiscard]] std::string state() const override;
  void load_state(const std::string& json) override;

 private:
  void add_columns(const std::vector<MetricValue>& metrics);
  void write(const std::filesystem::path& path, const std::string& line);

  std::filesystem::path file_;
  std::string header_, rows_;
  int64_t written_ = -1;              // bytes of the file; -1: it is not as this log has left it
  int64_t reserved_ = 0;              // bytes for which the disk has space
  std::vector<std::string> columns_;  // of metrics, in the order in which they came
};

/// Writes `file` with the columns step (from 1, of this fit), loss (of the step's batch), lr (of
/// the last parameter group), as CsvLog does, and also when the fit ends. At most kRows steps: when
/// there are more, every second of them is dropped, again and again, so the rows stay evenly spaced
/// and the file small. Losses on a device are read in groups, so that not every step waits for it.
class StepsLog final : public Callback {
 public:
  static constexpr size_t kRows = 1000;  ///< rows that the file has at most

  /// Takes `file` relative to the Learner's folder, if it is not absolute.
  explicit StepsLog(std::filesystem::path file = "steps.csv") : file_(std::move(file)) {}

  [[nodiscard]] std::string name() const override { return "steps_log:" + file_.string(); }
  [[nodiscard]] CallbackFacts facts() const override;
  Action before_fit(FitContext& context) override;
  Action after_step(FitContext& context) override;
  Action after_epoch(FitContext& context) override;
  Action after_fit(FitContext& context) override;
  void purge() override {
    read_losses();
    losses_.reset();
  }
  void account(Ledger& ledger) const override;
  [[nodiscard]] std::string state() const override;
  void load_state(const std::string& json) override;

 private:
  void read_losses() const;
  void thin_out();
  void write(const FitContext& context);

  std::filesystem::path file_;
  int64_t seen_ = 0, stride_ = 1;
  int64_t written_ = 0;  // seen_ when the file was written
  mutable std::vector<StepRow> rows_;
  at::Tensor losses_;           // on the device, of the last rows; none on the host
  mutable int64_t unread_ = 0;  // how many of them, oldest first
};

}  // namespace tare
