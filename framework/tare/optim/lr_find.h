// The search for a learning rate: its options, its curve and what the curve suggests. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tare/base/terminal.h"
#include "tare/config/field.h"

namespace tare {

/// Configures a search for a learning rate (Smith 2015, "Cyclical Learning Rates for Training
/// Neural Networks"), with the defaults of fastai: short steps of training with a rate that rises
/// from `start` to `end` by the same ratio each step.
struct LrFindOptions {
  double start = 1e-7;     ///< the first rate, > 0
  double end = 10;         ///< the rate that would follow the last step, > start
  int64_t steps = 100;     ///< of the search, 6 to 10,000
  bool stop_early = true;  ///< end where the smoothed loss is above 4 times its lowest
  /// Which suggestion is taken: valley, steepest or minimum, see LrFindResult.
  std::string suggestion = "valley";

  bool operator==(const LrFindOptions&) const = default;
  /// Throws ConfigError, naming `where`, for values out of range.
  void check(const std::string& where) const;
};
void visit_fields(auto& visit, LrFindOptions& o) {
  visit("start", o.start, config::above(0));
  visit("end", o.end, config::above(0));
  visit("steps", o.steps, config::between(6, 10000));
  visit("stop_early", o.stop_early);
  visit("suggestion", o.suggestion, config::one_of({"valley", "steepest", "minimum"}));
}

/// Holds one step of a search.
struct LrFindPoint {
  double lr = 0;        ///< of the step
  double loss = 0;      ///< of its batch, before the step
  double smoothed = 0;  ///< the losses so far with a decay of 0.98, corrected for their number
};

/// Holds what a search has found. The suggestions are fastai's; they skip the points of the first
/// tenth of the steps and the last five, if others remain, and are unset where the loss never
/// falls.
struct LrFindResult {
  std::vector<LrFindPoint> points{};  ///< in order; the losses are finite
  int64_t steps = 0;                  ///< that were asked for
  bool stopped_early = false;         ///< the loss rose too far, or was not finite
  bool interrupted = false;           ///< see interrupt.h; there are no suggestions then
  /// In the middle of the longest valley: the longest series of ever lower smoothed losses.
  std::optional<double> valley{};
  /// Where the smoothed loss falls fastest, over the logarithm of the rate.
  std::optional<double> steepest{};
  std::optional<double> minimum{};    ///< a tenth of the rate with the lowest smoothed loss
  std::string suggestion = "valley";  ///< the one to take: LrFindOptions::suggestion
  double seconds = 0;                 ///< wall time

  /// Returns the suggestion to take. Throws StateError where there is none.
  [[nodiscard]] double lr() const;
  /// Returns a plot of the smoothed loss over the rate, and a line with the suggestions.
  [[nodiscard]] std::string str(size_t width = kAnyWidth) const;
};

/// Fills the suggestions of `result` from its points.
void suggest(LrFindResult& result);

/// Follows the losses of a search: smooths them, and says when it ends.
class LrFindCurve {
 public:
  /// Begins a search without points. Throws nothing: the options were checked.
  explicit LrFindCurve(const LrFindOptions& options) : options_(options) {}
  /// Adds a step. A loss that is not finite is no point, and ends the search.
  void add(double lr, double loss);
  /// Whether the search has ended.
  [[nodiscard]] bool finished() const;
  /// Returns the points so far.
  [[nodiscard]] const std::vector<LrFindPoint>& points() const { return points_; }
  /// Whether it has ended before its last step.
  [[nodiscard]] bool stopped_early() const { return stopped_early_; }

 private:
  LrFindOptions options_;
  std::vector<LrFindPoint> points_;
  double mean_ = 0, lowest_ = 0;
  bool stopped_early_ = false;
};

}  // namespace tare
