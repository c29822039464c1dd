// SweepSummary: what a sweep was asked and how its runs went, as values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace tare::report {

/// Describes a key that varies: a choice, or a number from `low` to `high`, both included.
struct SweepParameter {
  std::string name{};                  ///< dotted path
  std::vector<std::string> choices{};  ///< texts; empty: a number
  double low = 0, high = 0;            ///< low <= high; above 0 if logarithmic
  double step = 0;                     ///< between numbers, from `low` on; 0: any number
  bool logarithmic = false;            ///< drawn evenly over the logarithm
  bool integer = false;                ///< whole numbers only
};

/// Is SweepRun::state of a run that was made from an earlier version of the recipe.
inline constexpr const char* kEarlierRun = "EARLIER";

/// Describes a run of a sweep, as its page shows it.
struct SweepRun {
  std::string name{};  ///< of the folder
  int64_t number = 0;  ///< in the order in which runs were asked for
  /// "COMPLETE", "PRUNED", "FAIL", "RUNNING" or "WAITING", as Optuna writes it. Others are listed,
  /// but not counted.
  std::string state = "WAITING";
  std::string reason{};          ///< of a failure
  std::vector<double> values{};  ///< by parameter: the number, or the index of a choice; NaN or
                                 ///< none where the parameter was not set
  std::vector<double> metric{};  ///< by epoch
  double value = std::numeric_limits<double>::quiet_NaN();  ///< of the metric at the end
  std::string placed{};    ///< "2 ranks on cuda:0, cuda:1"; empty: the run is of one rank
  int64_t peak_bytes = 0;  ///< of the rank with the most; 0: not known
  double seconds = 0;      ///< wall time
};

/// Holds what the page of a sweep shows. A value.
struct SweepSummary {
  std::string name{}, metric{};              ///< of the sweep; of what it compares
  bool maximize = false;                     ///< else the lowest value is the best
  bool generated = false;                    ///< the data are drawn by a program
  std::vector<SweepParameter> parameters{};  ///< in the order of the axes
  std::vector<SweepRun> runs{};              ///< in any order
};

/// Whether the run has gone through all its epochs.
[[nodiscard]] bool is_complete(const SweepRun& run);
/// Whether a pruner ended the run early.
[[nodiscard]] bool is_pruned(const SweepRun& run);

/// Whether a value is zero or of a size from 1e-100 to 1e100, so that no axis overflows. Other
/// values are listed, but neither drawn nor compared.
[[nodiscard]] bool is_drawable(double value);
/// Bounds whole numbers: those beyond this limit, positive or negative, are drawn at the limit,
/// because larger doubles skip integers.
inline constexpr double kMostCounted = 9e15;

/// Returns the value of a parameter, NaN where the run has none that can be drawn.
[[nodiscard]] double value_of(const SweepSummary& sweep, const SweepRun& run, size_t parameter);

/// Returns the complete runs with a finite value, then pruned ones with a finite value, then
/// complete and pruned runs without one, runs that are running or waiting, and all others. Within
/// each group the best come first, equal ones by number. The pointers point into `sweep`.
[[nodiscard]] std::vector<const SweepRun*> best_first(const SweepSummary& sweep);

/// Returns the complete runs with a drawable value, the best first. The pointers point into
/// `sweep`.
[[nodiscard]] std::vector<const SweepRun*> ranked(const SweepSummary& sweep);

/// Returns at most `limit` >= 2 of the `ranked` runs, at even distances, with the best and the
/// worst.
[[nodiscard]] std::vector<const SweepRun*> spread(const std::vector<const SweepRun*>& ranked,
                                                  size_t limit);

}  // namespace tare::report
