// Weighted sampling: which samples an epoch has where some count more than others.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tare/data/dataset.h"

namespace tare {

/// Holds a weight >= 0 for each sample of a data set; shared, because a loader keeps it.
using SampleWeights = std::shared_ptr<const std::vector<double>>;

/// Throws ConfigError, naming `where`, unless there are `samples` weights that are finite and >= 0
/// and one of them is above 0.
void check_weights(std::span<const double> weights, int64_t samples, const std::string& where);

/// Returns as many indices as there are weights, in ascending order: sample i is there n * w[i] /
/// sum(w) times, rounded up or down, where n is the number of weights. Which way depends on `seed`,
/// so that the expectation is exact. Systematic resampling after Kitagawa, "Monte Carlo Filter and
/// Smoother for Non-Gaussian Nonlinear State Space Models", 1996, appendix. The weights are checked
/// ones.
[[nodiscard]] std::vector<int64_t> weighted_indices(std::span<const double> weights, uint64_t seed);

/// Returns weights with which every class of the data is drawn equally often: one over the number
/// of samples that have the label, and 0 for a label below 0, which losses ignore. Throws
/// ConfigError, naming `where`, for data whose targets are no class labels. Reads all targets.
[[nodiscard]] SampleWeights balancing_weights(const DatasetPtr& data, const std::string& where);

}  // namespace tare
