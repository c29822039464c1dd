// Progress: the epochs table and a progress line, for a terminal or a file.
#pragma once

#include <chrono>
#include <iosfwd>
#include <limits>
#include <string>
#include <vector>

#include "tare/base/terminal.h"
#include "tare/callback/callback.h"

namespace tare {

/// Prints a table with a row per epoch: epoch, train_loss, valid_loss, each metric, time. On a
/// terminal, a row is green and has a star if its epoch is the best so far, metrics that do not fit
/// into the width are omitted, and a line below the table (a bar, the time left, loss, learning
/// rate, samples/s) is redrawn at most 10 times a second. Elsewhere it writes plain lines without
/// control bytes: one per epoch, and one every 10 s in long epochs. A validation inside an epoch
/// has a line of its own in both.
class Progress final : public Callback {
 public:
  /// Selects between the output for a terminal and plain lines.
  enum class Style {
    automatic,  ///< terminal if `out` is standard output and on_terminal(), else plain
    terminal,
    plain
  };

  /// Writes to `out`, which must outlive the callback.
  explicit Progress(std::ostream& out, Style style = Style::automatic);

  [[nodiscard]] std::string name() const override { return "progress"; }
  [[nodiscard]] CallbackFacts facts() const override { return {.logs = true, .only_writes = true}; }
  Action before_fit(FitContext& context) override;
  Action before_epoch(FitContext& context) override;
  Action after_batch(FitContext& context) override;
  Action before_validate(FitContext& context) override;
  Action after_validate(FitContext& context) override;
  Action after_epoch(FitContext& context) override;
  Action after_fit(FitContext& context) override;

 private:
  using Clock = std::chrono::steady_clock;
  void draw(const FitContext& context, Clock::time_point now);
  void redraw(const std::string& line);
  void erase();
  [[nodiscard]] double seconds_left(const FitContext& context, Clock::time_point now) const;

  std::ostream& out_;
  bool terminal_ = false;
  bool header_due_ = false, line_drawn_ = false;
  Clock::time_point fit_start_{}, epoch_start_{}, last_draw_{};
  int64_t samples_ = 0;
  int64_t batches_ = 0;  // done since before_fit; a fit that was resumed has done more
  double best_ = std::numeric_limits<double>::infinity();
};

/// Returns the table's head and a row, as Progress prints them: columns of fixed width, two spaces
/// between. The last metrics are skipped where the line would be longer than `width` columns.
[[nodiscard]] std::string epoch_header(const EpochRow& row, size_t width = kAnyWidth);
/// Returns the row of an epoch, under epoch_header().
[[nodiscard]] std::string epoch_line(const EpochRow& row, size_t width = kAnyWidth);

/// Returns the line of a validation inside an epoch: "step 200  valid_loss 0.1234  accuracy 0.95".
/// The last metrics are skipped where the line would be longer than `width` columns.
[[nodiscard]] std::string validation_line(const ValidationRow& row, size_t width = kAnyWidth);

/// Returns the row with the lowest validation loss, without validation with the lowest training
/// loss; the first of equal ones. nullptr if there is none whose loss is a number.
[[nodiscard]] const EpochRow* best_epoch(const std::vector<EpochRow>& rows);

/// Returns the line below the table, of at most `width` bytes: "epoch 2/8  [=====>    ]  12 s left
/// loss 0.2231  lr 1.00e-03  5432 samples/s". With negative `seconds_left` the batch stands in its
/// place; what does not fit is cut from the end. Waits for the device, to read the loss.
[[nodiscard]] std::string progress_line(const FitContext& context, double seconds_left,
                                        double samples_per_s, size_t width);

/// Returns "[=====>    ]" of `columns` bytes; `share` is in [0, 1].
[[nodiscard]] std::string progress_bar(double share, size_t columns);

}  // namespace tare
