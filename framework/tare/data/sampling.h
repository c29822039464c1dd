// Sampling: which samples an epoch has where some count more than others, and batches of samples of
// similar length.
#pragma once

#include <cstdint>
#include <map>
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

/// Returns a weight for each sample: that of its label in `of_labels`, 1 for a label that is not
/// there, 0 for a label below 0. Throws ConfigError, naming `where`, for data whose targets are no
/// class labels with names, for an unknown label, and where no sample has a weight. Reads all
/// targets.
[[nodiscard]] SampleWeights class_weights(const DatasetPtr& data,
                                          const std::map<std::string, double>& of_labels,
                                          const std::string& where);

/// Returns Dataset::sample_size() of every sample. Throws ConfigError, naming `where`, for data
/// whose samples have no lengths.
[[nodiscard]] std::vector<int64_t> sample_lengths(const Dataset& data, const std::string& where);

/// Returns `order`, whose elements are indices of `lengths`, so that each `batch` of them in turn
/// have similar lengths. It is cut into at least two pools of about the same size, which is at most
/// 50 batches. The samples of a pool are sorted from the longest to the shortest, equal ones keep
/// their order, and the batches of all pools are shuffled by `seed`. The first has the longest
/// sample, so that the memory of an epoch shows in its first step; a last batch that is not full
/// stays the last. After LengthGroupedSampler of Hugging Face's transformers, SortedDL of fastai.
[[nodiscard]] std::vector<int64_t> grouped_by_length(std::vector<int64_t> order,
                                                     std::span<const int64_t> lengths,
                                                     int64_t batch, uint64_t seed);

}  // namespace tare
