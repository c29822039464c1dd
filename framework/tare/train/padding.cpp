// Chooses the samples of a fit's batches, and counts their padding.
#include "tare/train/padding.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include "tare/base/error.h"

namespace tare {

std::string Padding::str() const {
  std::array<char, 16> percent{};
  std::snprintf(percent.data(), percent.size(), "%.1f", share * 100);
  return "samples of " + std::to_string(shortest) + " to " + std::to_string(longest) + "; " +
         percent.data() + " % of the batches is padding";
}

SampleWeights sample_weights(const LearnerOptions& options, const DatasetPtr& train,
                             const std::string& call) {
  const auto& of_classes = options.class_sampling.weights;
  const bool by_sampling = options.sampling != "each";
  if (!of_classes.empty() && (by_sampling || !options.sample_weights.empty()))
    throw ConfigError(call, "class_sampling",
                      std::string("and ") + (by_sampling ? "sampling" : "sample_weights") +
                          " both say how samples are drawn",
                      "one of them", by_sampling ? options.sampling : "weights");
  if (!of_classes.empty()) return class_weights(train, of_classes, call);
  if (!options.sample_weights.empty()) {
    if (by_sampling)
      throw ConfigError(call, "sample_weights", "and sampling both say how samples are drawn",
                        "one of them", options.sampling);
    check_weights(options.sample_weights, train->size(), call);
    return std::make_shared<const std::vector<double>>(options.sample_weights);
  }
  return options.sampling == "balanced" ? balancing_weights(train, call) : nullptr;
}

LoaderOptions training_loader(const LearnerOptions& options, bool drop_last,
                              SampleWeights weights) {
  return {.batch = options.batch,
          .shuffle = options.shuffle,
          .weights = std::move(weights),
          .group_by_length = options.group_by_length,
          .drop_last = drop_last,
          .workers = options.workers,
          .seed = options.seed,
          .training = true};
}

std::optional<Padding> padding_of(const DatasetPtr& train, const LearnerOptions& options) {
  Padding padding{.shortest = train->sample_size(0), .longest = train->sample_size(0)};
  for (int64_t i = 1; i < train->size(); ++i) {
    const int64_t length = train->sample_size(i);
    padding.shortest = std::min(padding.shortest, length);
    padding.longest = std::max(padding.longest, length);
  }
  if (padding.shortest == padding.longest) return std::nullopt;
  const bool drop_last = options.drop_last.value_or(false) && options.batch <= train->size();
  const SampleWeights weights = sample_weights(options, train, "plan");
  padding.share = Loader(train, training_loader(options, drop_last, weights)).padding_share();
  return padding;
}

}  // namespace tare
