// Importance: how much each parameter of a sweep distinguishes its best runs from all. Internal.
#pragma once

#include <cstddef>
#include <vector>

#include "tare/report/sweep_summary.h"

namespace tare::report {

/// Gives the number of best runs below which the shares mean little: Optuna advises five, and from
/// a single one a density cannot be estimated.
inline constexpr size_t kFewBest = 5, kTooFewBest = 2;

/// Holds the importance of each parameter; a value.
struct Importance {
  std::vector<double> shares{};  ///< by parameter, >= 0, with a sum of 1
  size_t runs = 0;               ///< that were compared
  size_t best = 0;               ///< of these, in the best tenth; equal values count as one
  bool differs = false;          ///< false: all are equal: no parameter matters
};

/// Computes PED-ANOVA over the complete runs with a drawable value: the Pearson divergence of a
/// parameter's density among the best tenth from that among all, each estimated on a grid of at
/// most 50 values with Gaussian kernels and Scott's bandwidth. From Watanabe, Bansal and Hutter,
/// "PED-ANOVA: Efficiently Quantifying Hyperparameter Importance in Arbitrary Subspaces", IJCAI
/// 2023, algorithm 1; for parameters that some runs have not, its conditional form (arXiv
/// 2601.20800, theorem 4.2). The numbers are those of PedAnovaImportanceEvaluator in Optuna 5.0.0
/// with its defaults.
[[nodiscard]] Importance importance_of(const SweepSummary& sweep);

}  // namespace tare::report
