// Plans the phases of a recipe, one after the other.
#include "tare/recipe/plan_resolved.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/callback/csv_log.h"
#include "tare/callback/monitor.h"
#include "tare/config/node.h"
#include "tare/plan/fit_probe.h"
#include "tare/plan/plan_adapted.h"
#include "tare/plan/scale_fit.h"
#include "tare/recipe/advice.h"
#include "tare/recipe/chosen_callbacks.h"
#include "tare/recipe/column_check.h"
#include "tare/recipe/export_plan.h"
#include "tare/recipe/learner_options.h"
#include "tare/recipe/phase_data.h"
#include "tare/recipe/schedule_preview.h"
#include "tare/recipe/target_check.h"
#include "tare/trace/estimate.h"
#include "tare/trace/trace.h"
#include "tare/train/learner_state.h"

namespace tare {
namespace {

/// Returns the allocations of reading the data: what stays, as one tensor of bytes, and what was
/// freed meanwhile.
plan::AllocationTrace reading_of(const OpenData& data) {
  plan::AllocationTrace work;
  const int64_t freed = data.peak_bytes - data.bytes;
  if (data.bytes > 0) {
    work.results.push_back({.sizes = {data.bytes}, .strides = {1}, .type = at::kByte});
    work.steps.push_back({.block = 0, .bytes = data.bytes, .result = 0});
  }
  if (freed > 0) work.steps.push_back({.block = work.steps.size(), .bytes = freed});
  if (freed > 0) work.steps.push_back({.block = work.steps.back().block});
  return work;
}

class RecipePlanner {
 public:
  RecipePlanner(const RecipeOptions& recipe, const RecipePlanOptions& options,
                const DataFacts& facts, RecipeData& data)
      : recipe_(recipe),
        options_(options),
        facts_(facts),
        data_(data),
        target_(plan::parse_target(options.device.empty() ? recipe.learner.device : options.device,
                                   options.capacity_bytes)) {
    // The ranks of a machine share the memory of its host, where none is named.
    if (!target_.caches && target_.name.find(':') == std::string::npos)
      target_.capacity_bytes /= options.ranks;
  }

  RecipePlan run() {
    RecipePlan result{.name = recipe_.name,
                      .device = target_.name,
                      .capacity_bytes = target_.capacity_bytes,
                      .ranks = options_.ranks,
                      .total_bytes = target_.total_bytes};
    model_ = model_spec();
    result.phases.resize(recipe_.phases.size());
    if (options_.schedule) schedules_.resize(recipe_.phases.size());
    if (options_.scale && options_.ranks > 1) result.scales.resize(recipe_.phases.size());
    std::vector<DataFacts> of_phases(recipe_.phases.size());
    for (const size_t i : order()) {
      result.phases[i] = plan_phase(i, of_phases[i]);
      if (!result.scales.empty()) result.scales[i] = plan_scale(i, result.phases[i]);
    }
    check_same_targets(recipe_, of_phases);
    result.exported = plan_export(recipe_, model_, of_phases.back(), result.phases.back());
    result.schedules = std::move(schedules_);
    return result;
  }

 private:
  /// Phases whose data are open, then the others from the last to the first, so that a run which
  /// follows finds the data of its first phase open.
  [[nodiscard]] std::vector<size_t> order() const {
    std::vector<size_t> open, others;
    for (size_t i = 0; i < recipe_.phases.size(); ++i)
      (is_open(recipe_, i, data_) ? open : others).push_back(i);
    open.insert(open.end(), others.rbegin(), others.rend());
    return open;
  }

  [[nodiscard]] ModelSpec model_spec() const {
    // The values of weights do not matter, and their sizes are the model's.
    const ModelOptions options = models::without_weights(model_options(recipe_, facts_));
    ModelSpec spec{recipe_.model.name, config::to_yaml(config::to_node(options))};
    make_for(recipe_, facts_, [&] { models::check(recipe_.model.name, options); });
    check_on_meta(spec, [this](Model& model) { check_model(recipe_, facts_, model); });
    return spec;
  }

  // A model that reads values while it is made is probed; the run checks it.
  void check_on_meta(const ModelSpec& spec, const std::function<void(Model&)>& check) const {
    try {
      const plan::MetaScope meta;
      std::optional<Model> model;
      make_for(recipe_, facts_, [&] { model.emplace(models::make(spec)); });
      check(*model);
    } catch (const plan::NotPlannable& error) {
      log::debug("phases are not checked against the model: " + std::string(error.what()));
    }
  }

  [[nodiscard]] bool refuses_one(const DataFacts& facts) const {
    bool refused = false;
    check_on_meta(model_, [&](Model& model) { refused = refuses_one_of(facts, model); });
    return refused;
  }

  /// Returns their number; 1 for a model that cannot be made on meta tensors.
  [[nodiscard]] int64_t layer_groups() const {
    int64_t groups = 1;
    check_on_meta(model_, [&](Model& model) { groups = std::ssize(model.layer_groups()); });
    return groups;
  }

  /// Puts what its data are like into `facts`.
  [[nodiscard]] MemoryPlan plan_phase(size_t index, DataFacts& facts) {
    OpenData& data = open_data(recipe_, index, data_);
    facts = data.facts;
    check_data(recipe_, index, data);
    if (recipe_.phases[index].data) check_same_columns(recipe_, index, facts_, facts);
    if (index == 0) check_sample_shape(recipe_, data.facts);
    check_batches(recipe_, index, data.facts, [&] { return refuses_one(data.facts); });
    const PlanRequest request = subject_of(index, data);
    MemoryPlan plan = planned(request, options_.advice);
    if (!plan.fits && !options_.advice) plan = planned(request, true);
    if (!plan.known())
      if (const auto why = refusal_of(request)) refuse_model(*why);
    plan.name = name_of(recipe_, index);
    if (options_.schedule)
      schedules_[index] = preview_schedule(recipe_, index, data.facts, layer_groups());
    for (PlanSaving& saving : plan.savings)
      saving.change = advice_for(recipe_, index, saving.change);
    return plan;
  }

  [[nodiscard]] plan::ScalePlan plan_scale(size_t index, const MemoryPlan& phase) {
    return scale_fit(subject_of(index, open_data(recipe_, index, data_)), target_, phase,
                     *options_.scale);
  }

  [[nodiscard]] MemoryPlan planned(const PlanRequest& request, bool advice) const {
    try {
      return plan_adapted(request, target_, advice);
    } catch (const ShapeError& error) {
      refuse_model(error.what());
    }
  }

  [[noreturn]] void refuse_model(const std::string& why) const {
    throw ConfigError("recipe.run", "model", "does not take the data: " + why,
                      "a model and a sample_shape for such data", recipe_.model.name)
        .within("", recipe_.file.place("model"));
  }

  [[nodiscard]] PlanRequest subject_of(size_t index, OpenData& data) const {
    PlanRequest request{.model = [this] { return models::make(model_); },
                        .ranks = options_.ranks,
                        .machine = target_.machine()};
    request.options = learner_options(recipe_, index, data.facts);
    request.options.callbacks = callbacks(index);
    const Splits& splits = data.named.splits;
    if (!data.train) data.train = std::make_shared<BatchAllocations>(splits.train, true);
    if (!data.valid && splits.valid)
      data.valid = std::make_shared<BatchAllocations>(splits.valid, false);
    request.train = data.train;
    request.valid = data.valid;
    if (request.on_host()) request.data_set = reading_of(data);
    const FitLength length = length_of(recipe_, recipe_.phases[index], data.facts);
    request.epochs = length.epochs;
    request.batches = length.batches;
    const LearningRate rate = rate_of(recipe_, recipe_.phases[index]);
    if (const LrFindOptions* search = rate.search()) request.search = *search;
    request.saving = saving_batches(index, data.facts);
    request.saves_at_end = !recipe_.phases[index].save.empty();
    request.before = [this, index](LearnerState& state) { keep_states(state, index); };
    request.set_up = [&phase = recipe_.phases[index]](LearnerState& state) {
      if (phase.reset_head) {
        const plan::OffCard host;
        models::reset_head(state.model);
      }
      state.freeze_to(phase.freeze_to, {});
    };
    return request;
  }

  /// Returns the callbacks of the phase; a plan asks each what it saves and allocates.
  [[nodiscard]] std::vector<CallbackPtr> callbacks(size_t index) const {
    std::vector<CallbackPtr> all{std::make_shared<StepsLog>()};  // as the run has for each phase
    RecipeOptions recipe = recipe_;  // with the classes that the data decide, as in the run
    recipe.model.options.classes = classes_of(recipe_, facts_);
    for (const auto& of : {std::optional<size_t>(), std::optional(index)})
      for (auto& chosen : make_callbacks(recipe, of)) all.push_back(std::move(chosen.callback));
    if (const std::string& best = recipe_.phases[index].best; !best.empty())
      all.push_back(std::make_shared<SaveBest>(SaveBestOptions{.monitor = {.figure = best}}));
    return all;
  }

  /// Returns after which batches of an epoch an automatic checkpoint is written at some time.
  [[nodiscard]] SavingBatches saving_batches(size_t index, const DataFacts& data) const {
    SavingBatches saving;
    const int64_t every = recipe_.save_every;
    if (every == 0) return saving;
    const PhaseOptions& phase = recipe_.phases[index];
    const int64_t batches = epoch_batches(recipe_, phase, data);
    const bool short_one = batches * batch_of(recipe_, phase, data) > data.training_samples;
    const int64_t all = all_batches(recipe_, phase, data);
    for (int64_t step = every; step <= all && !(saving.whole && (saving.last || !short_one));
         step += every)
      (short_one && step % batches == 0 ? saving.last : saving.whole) = true;
    return saving;
  }

  /// Keeps the optimizer states that earlier phases have left.
  void keep_states(LearnerState& state, size_t index) const {
    size_t first = index;
    while (first > 0 && !recipe_.phases[first - 1].clear_opt) --first;
    for (size_t i = first; i < index; ++i) {
      state.freeze_to(recipe_.phases[i].freeze_to, {});
      state.ensure_optimizer().prepare();
      plan::mark(plan::kCacheReturned);  // by the purge at the end of the phase
    }
    // The phase before has left its frozen weights as they are held.
    if (recipe_.learner.frozen_weights != "as_is" && index > 0)
      state.freeze_to(recipe_.phases[index - 1].freeze_to, {});
  }

  const RecipeOptions& recipe_;
  const RecipePlanOptions& options_;
  const DataFacts& facts_;
  RecipeData& data_;
  plan::Target target_;
  ModelSpec model_;
  std::vector<SchedulePreview> schedules_;
};

}  // namespace

RecipePlan plan_resolved(const RecipeOptions& recipe, const RecipePlanOptions& options,
                         const DataFacts& facts, RecipeData& data) {
  return RecipePlanner(recipe, options, facts, data).run();
}

}  // namespace tare
