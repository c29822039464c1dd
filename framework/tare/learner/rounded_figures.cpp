// Evaluates rounded weights before they are written.
#include "tare/learner/rounded_figures.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tare/base/error.h"
#include "tare/config/scalar.h"
#include "tare/learner/learner.h"
#include "tare/model/registry.h"
#include "tare/model/stored.h"
#include "tare/train/bundle_data.h"

namespace tare {

void check_tolerance(const std::optional<double>& tolerance, const char* call) {
  if (!tolerance || *tolerance >= 0) return;
  throw ConfigError(call, "tolerance", "is no share", ">= 0, such as 0.01",
                    config::number_text(*tolerance));
}

void measure_rounded(const RoundedWeights& given, const std::vector<NamedTensor>& tensors,
                     BundleManifest& manifest) {
  Model model = models::make(manifest.model);
  load_stored(model, tensors, /*strict=*/true, given.call, {});
  const LearnerOptions& trained = given.learner;
  Learner rounded(std::move(model), {.train = {}, .valid = given.valid, .test = {}},
                  {.loss = trained.loss,
                   .metrics = trained.metrics,
                   .device = trained.device,
                   .batch = trained.batch,
                   .precision = trained.precision,
                   .task = trained.task});
  const auto figures = [&](const Evaluation& all) {
    const EpochRow row{.valid_loss = all.loss, .metrics = all.metrics};
    return bundle_metrics(&row, trained.metrics);
  };
  const Evaluation after = rounded.validate();
  if (manifest.metrics.empty()) manifest.metrics = figures(given.trained());
  std::vector<BundleMetric> before = std::exchange(manifest.metrics, figures(after));
  if (manifest.trained_metrics.empty()) manifest.trained_metrics = std::move(before);
  const auto loss = std::ranges::find(manifest.trained_metrics, "valid_loss", &BundleMetric::name);
  if (!given.tolerance || loss == manifest.trained_metrics.end()) return;
  const double most = loss->value + *given.tolerance * std::abs(loss->value);
  if (after.loss <= most) return;
  throw ConfigError(given.call, "tolerance",
                    "is exceeded: the weights as " + given.storage + " have the valid_loss " +
                        config::number_text(after.loss) + ", and those that were trained " +
                        config::number_text(loss->value),
                    "other weights, or a higher tolerance", config::number_text(*given.tolerance));
}

}  // namespace tare
