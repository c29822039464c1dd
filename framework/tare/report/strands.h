// Strands: lines of many runs in one plot, each in a shade that shows how good the run is.
// Internal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tare/report/curve.h"
#include "tare/report/sweep_summary.h"

namespace tare::report {

/// Shades of the scale: viridis, by Smith and van der Walt, 2015, without the end that the page's
/// colour would swallow. Contrast to the page rises evenly from the worst to the best run, in light
/// and dark mode, so that colour-blind readers see the order.
inline constexpr size_t kShades = 9;

/// Shades each run by its rank, so that a few outliers do not take up the scale.
class Shading {
 public:
  /// Ranks `runs`, which have finite values and must outlive the shading.
  Shading(const std::vector<const SweepRun*>& runs, bool maximize);
  /// Returns the share of the runs that are worse: 0 for the worst, 1 for the best; NaN for a value
  /// that is not finite.
  [[nodiscard]] double shade(double value) const;
  /// Returns the value of the worst run; NaN without runs.
  [[nodiscard]] double worst() const { return sign_ * costs_.back(); }
  [[nodiscard]] double best() const { return sign_ * costs_.front(); }
  /// Whether this is the first complete one of the runs.
  [[nodiscard]] bool is_best(const SweepRun& run) const { return &run == best_run_; }

 private:
  [[nodiscard]] double worse_than(double cost) const;

  double sign_;
  std::vector<double> costs_;  // values, negative if the highest is the best; ascending, not empty
  const SweepRun* best_run_ = nullptr;
};

struct Strand {
  std::string name{};  ///< seen where a pointer rests on it, if strands are few
  std::string path{};  ///< data of an SVG path in a plot's view box
  double shade = 0;    ///< NaN: grey
  bool dashed = false;
  bool best = false;  ///< in front of all, wider, in a colour that is not of the scale
};

/// Returns the content of a plot: the better ones in front.
[[nodiscard]] std::string drawn(std::vector<Strand> strands);

/// Returns an HTML list: the scale with its ends, the best run, and what dashed and grey mean,
/// where `all` has such. Each shade has about as many runs.
[[nodiscard]] std::string strand_legend(const std::vector<Strand>& all, const Shading& shading);

/// Returns the style sheet of strands, light and dark.
[[nodiscard]] std::string strand_style();

}  // namespace tare::report
