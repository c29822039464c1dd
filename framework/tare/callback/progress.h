// Progress: the epochs table and a progress line, for a terminal or a file.
#pragma once

#include <chrono>
#include <iosfwd>
#include <string>

#include "tare/callback/callback.h"

namespace tare {

/// Prints a table with a row per epoch: epoch, train_loss, valid_loss, each metric, time. On a
/// terminal, a line below it (step, loss, learning rate, samples/s) is redrawn at most 10 times a
/// second and cut to the terminal's width. Elsewhere it writes plain lines without control bytes:
/// one per epoch, and one every 10 s in long epochs.
class Progress final : public Callback {
 public:
  enum class Style {
    automatic,  ///< terminal if `out` is standard output and that is a terminal, else plain
    terminal,
    plain
  };

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
