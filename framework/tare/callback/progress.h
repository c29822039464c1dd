// The epochs table and a progress line, on a terminal or into a file.
#pragma once

#include <chrono>
#include <iosfwd>
#include <string>

#include "tare/callback/callback.h"

namespace tare {

/// Prints a table with a row per epoch: epoch, train_loss, valid_loss, each metric, time. On a
/// terminal a line below it is redrawn at most 10 times a second (step, smoothed loss, rate,
/// samples/s) and cut to the terminal's width; anywhere else plain lines are written, one per epoch
/// and one every 10 s in long ones, without control bytes.
class Progress final : public Callback {
 public:
  enum class Style {
    automatic,
    terminal,
    plain
  };  ///< automatic: terminal where `out` is standard output on a terminal

  /// `out` must outlive the callback.
  explicit Progress(std::ostream& out, Style style = Style::automatic);

  [[nodiscard]] std::string name() const override { return "progress"; }
  Action before_fit(FitContext& context) override;
  Action before_epoch(FitContext& context) override;
  Action after_batch(FitContext& context) override;
  Action after_epoch(FitContext& context) override;
  Action after_fit(FitContext& context) override;

 private:
  using Clock = std::chrono::steady_clock;
  void draw(const FitContext& context, Clock::time_point now);
  void erase();

  std::ostream& out_;
  bool terminal_ = false;
  bool header_due_ = false, line_drawn_ = false;
  Clock::time_point epoch_start_{}, last_draw_{};
  int64_t samples_ = 0;
};

/// The table's head and a row, as Progress prints them: columns of fixed width, two spaces between.
[[nodiscard]] std::string epoch_header(const EpochRow& row);
[[nodiscard]] std::string epoch_line(const EpochRow& row);

}  // namespace tare
