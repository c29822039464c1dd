// Describes a Learner's model and data for a bundle.
#include <algorithm>
#include <set>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/metric/loss.h"
#include "tare/train/bundle_data.h"
#include "tare/train/fit_loop.h"
#include "tare/train/learner_state.h"

namespace tare {

namespace {

std::optional<BundleData> seen_data(const LearnerState& state) {
  auto data = bundle_data(state.data);
  if (!data) return data;
  data->input = state.seen_input;
  data->input_name = state.seen_name;
  data->more_inputs = state.seen_more;
  if (state.varying) add_varying(*data, *state.varying);
  return data;
}

}  // namespace

void LearnerState::check_labels_fit(const BundleManifest& manifest,
                                    const std::vector<std::string>& labels,
                                    const char* call) const {
  std::set<std::string> different;
  for (const std::string& label : labels)
    if (!different.insert(label).second)
      throw ConfigError(call, "labels", "must differ from one another", "each name once",
                        "'" + label + "' twice");
  auto outputs = seen_outputs;
  if (!outputs) outputs = class_count({.model = manifest.model});
  if (!outputs) outputs = class_count(manifest);  // by the labels of the data
  if (!outputs || std::cmp_equal(labels.size(), *outputs)) return;
  if (*outputs == 1 && labels.size() == 2 && loss.activation_name == "sigmoid") return;
  throw ConfigError(call, "labels", "must be a name for each output of the model",
                    std::to_string(*outputs) + " names", std::to_string(labels.size()));
}

void LearnerState::note_trained() { trained_on = seen_data(*this); }

std::optional<BundleData> LearnerState::described_data() const {
  return loop && loop->has_stepped() ? seen_data(*this) : trained_on;
}

void LearnerState::note_loaded(const std::string& described) {
  trained_on.reset();
  if (described.empty()) {
    if (origin && new_data) trained_on = bundle_data(data);
    return;
  }
  try {
    trained_on = bundle_data_from(described);
  } catch (const ConfigError& error) {
    log::warning("the checkpoint does not describe its data for a bundle: " +
                 std::string(error.what()));
    trained_on = BundleData{.described = false};
  }
}

BundleManifest LearnerState::manifest(const std::vector<std::string>& labels,
                                      const char* call) const {
  BundleManifest manifest = origin.value_or(BundleManifest{});
  if (model.spec()) manifest.model = *model.spec();
  auto described = trained_on;
  if (!described && !origin) described = bundle_data(data);
  if (described) {
    if (!described->input && seen_input) {
      described->input = seen_input;
      described->input_name = seen_name;
      described->more_inputs = seen_more;
      add_varying(*described, varying_dimensions(data));
    } else if (!described->input) {
      add_inputs(*described, data);
    }
    describe(manifest, *described, call);
  } else if (!origin && !model.takes(1)) {
    throw StateError(call, "without data, and the model takes several inputs",
                     "give it data with set_data(), which has the names and shapes of the inputs");
  } else if (!origin && takes_tokens(manifest.model)) {
    manifest.input = "int64";
  }
  const auto named = loss_names();
  manifest.activation = loss.activation_name;
  const bool is_named = std::ranges::find(named, loss.name) != named.end();
  manifest.loss = is_named ? losses::text_of(options.loss) : "";
  name_numbers(manifest);
  if (!labels.empty()) {
    check_labels_fit(manifest, labels, call);
    manifest.labels = labels;
  }
  if (lent_figures || (pending && pending->plan.batch > 0)) {  // figures of other weights
    manifest.metrics.clear();
  } else if (restored_validation) {
    const EpochRow row = row_of(*restored_validation);
    manifest.metrics = bundle_metrics(&row, options.metrics);
  } else if (const EpochRow* row = row_of_weights(history, restored_epoch)) {
    manifest.metrics = bundle_metrics(row, options.metrics);
  }
  return manifest;
}

}  // namespace tare
