// The figures of rounded weights, which an export measures. Internal.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tare/data/dataset.h"
#include "tare/inference/bundle.h"
#include "tare/memory/named_tensor.h"
#include "tare/train/options.h"

namespace tare {

/// Says which weights measure_rounded() evaluates, and how.
struct RoundedWeights {
  const char* call = "learner.export_to";  ///< in messages
  std::string storage{};                   ///< of the tensors, see ExportOptions::weights
  std::optional<double> tolerance{};       ///< see ExportOptions::tolerance
  /// The options of the training; callbacks are not used.
  LearnerOptions learner{};
  DatasetPtr valid{};  ///< the validation split
  /// Evaluates the weights that were trained, where the manifest has no figures of theirs.
  std::function<Evaluation()> trained{};
};

/// Evaluates the rounded tensors in a new model of the registry, the manifest's, over the
/// validation split. The figures become BundleManifest::metrics, and those that were there its
/// trained_metrics. Throws ConfigError where the loss rises by more than the tolerance.
void measure_rounded(const RoundedWeights& rounded, const std::vector<NamedTensor>& tensors,
                     BundleManifest& manifest);

/// Throws ConfigError for a tolerance that is no share.
void check_tolerance(const std::optional<double>& tolerance, const char* call);

}  // namespace tare
