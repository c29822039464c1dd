// ScalePlan: the model of scale() for a fit that is planned.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tare/plan/scale.h"

namespace tare::plan {

/// Bounds the ranks of a plan and of a job.
inline constexpr int64_t kMostRanks = 1024;

/// Is the share of a device's peak rate that a training is taken to reach where nothing is
/// measured: Chowdhery et al. 2022, "PaLM", table 3, have 21 to 46 % for language models.
inline constexpr double kPeakShare = 0.4;

/// Sets what a model of many devices cannot know from the plan.
struct ScaleOptions {
  Cluster cluster{};                ///< the machines and their links
  std::optional<double> rate{};     ///< operations that a device computes by the second, > 0
  std::optional<double> batch_s{};  ///< seconds of one device for a step of the whole batch, > 0
};

/// Holds the model of a fit on many devices. A value.
struct ScalePlan {
  std::string name{};    ///< of the recipe's phase
  std::string reason{};  ///< why there are no rows; empty: there are
  Cluster cluster{};     ///< as it was given
  int64_t ranks = 1;     ///< as it was given
  int64_t batch = 0;     ///< samples of a step on all ranks
  int64_t parts = 1;     ///< micro-batches of a rank's part
  int64_t own = 0;       ///< samples of the rank with most
  /// Says how the time of a computation is known, as a sentence's part; empty: it is unknown.
  std::string computation{};
  std::optional<double> sample_s{};        ///< seconds of one device for a sample; unset: unknown
  int64_t sample_flops = 0;                ///< operations for a sample; 0: unknown
  std::vector<std::string> not_counted{};  ///< see MemoryPlan::not_counted
  /// Says why there is no row for a strategy that a setting of the recipe rules out.
  std::vector<std::string> refused{};
  std::vector<ScaleRow> rows{};  ///< by strategy
};

}  // namespace tare::plan
