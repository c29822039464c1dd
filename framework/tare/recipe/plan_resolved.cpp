// Plans the phases of a recipe, one after the other.
#include "tare/recipe/plan_resolved.h"

#include <c10/util/Exception.h>

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
#include "tare/learner/learner_devices.h"
#include "tare/memory/backend.h"
#include "tare/parallel/stages.h"
#include "tare/plan/divide.h"
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

/// Returns the names of the devices in the recipe's stages, as many as the plan has; a division by
/// `auto` has those that are there.
std::vector<std::string> stages_for(const RecipeOptions& recipe, const RecipePlanOptions& options) {
  const auto& stages = recipe.learner.stages;
  if (stages.empty()) return {};
  if (options.ranks > 1)
    throw ConfigError("recipe.plan", "stages", "divide the model of one process",
                      "no stages where several ranks train", std::to_string(options.ranks))
        .within("", recipe.file.place("stages"));
  if (stages.size() > 1 || stages.front() != "auto") return stages;
  std::vector<std::string> names;
  for (const c10::Device device : parse_devices(recipe.learner)) names.push_back(device.str());
  return names;
}

std::string device_for(const RecipeOptions& recipe, const RecipePlanOptions& options,
                       const std::vector<std::string>& stages) {
  if (!options.device.empty()) return options.device;
  return stages.empty() ? recipe.learner.device : parallel::stage_name(stages.front()).device;
}

/// Returns a card for each stage of a model that is divided; empty: it is on the host or not
/// divided.
std::vector<plan::Target> cards_of(const std::vector<std::string>& stages,
                                   const RecipePlanOptions& options) {
  std::vector<plan::Target> cards;
  if (stages.size() < 2) return cards;
  for (const std::string& device : parallel::device_names(stages))
    cards.push_back(plan::parse_target(options.device.empty() ? device : options.device,
                                       options.capacity_bytes));
  if (!cards.front().caches) cards.clear();
  return cards;
}

/// Returns a target of the name and capacity of all cards together, and else like the first.
plan::Target sum_of(const std::vector<plan::Target>& cards) {
  plan::Target all = cards.front();
  for (size_t i = 1; i < cards.size(); ++i) {
    all.name += ", " + cards[i].name;
    all.capacity_bytes += cards[i].capacity_bytes;
    if (all.total_bytes || cards[i].total_bytes)
      all.total_bytes = all.total_bytes.value_or(all.capacity_bytes) +
                        cards[i].total_bytes.value_or(cards[i].capacity_bytes);
  }
  return all;
}

class RecipePlanner {
 public:
  RecipePlanner(const RecipeOptions& recipe, const RecipePlanOptions& options,
                const DataFacts& facts, RecipeData& data)
      : recipe_(recipe),
        options_(options),
        facts_(facts),
        data_(data),
        stages_(stages_for(recipe, options)),
        cards_(cards_of(stages_, options)),
        target_(cards_.empty() ? plan::parse_target(device_for(recipe, options, stages_),
                                                    options.capacity_bytes)
                               : sum_of(cards_)) {
    // The ranks of a machine share the memory of its host, where none is named. A budget is that of
    // each rank.
    if (!target_.caches && target_.name.find(':') == std::string::npos) {
      const memory::DeviceBackend& host = memory::backend(c10::kCPU);
      const int64_t all = host.usage().allocated_bytes + host.memory_info().available_bytes;
      target_.capacity_bytes = std::min(target_.capacity_bytes, all / options.ranks);
    }
  }

  RecipePlan run() {
    model_ = model_spec();
    const std::vector<std::string> divided =
        is_divided_by_plan() ? divide_by_plan() : std::vector<std::string>();
    RecipePlan result{.name = recipe_.name,
                      .device = target_.name,
                      .capacity_bytes = target_.capacity_bytes,
                      .ranks = options_.ranks,
                      .total_bytes = target_.total_bytes,
                      .stages = divided};
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
  [[nodiscard]] bool is_divided_by_plan() const {
    return cards_.size() > 1 && recipe_.learner.stages == std::vector<std::string>{"auto"};
  }

  /// Returns the first of the phases that train the most layer groups.
  [[nodiscard]] size_t largest_phase() const {
    const int64_t groups = layer_groups();
    size_t largest = 0;
    const auto first_trained = [&](size_t i) {
      const int64_t first = recipe_.phases[i].freeze_to;
      return first < 0 ? first + groups : first;
    };
    for (size_t i = 1; i < recipe_.phases.size(); ++i)
      if (first_trained(i) < first_trained(largest)) largest = i;
    return largest;
  }

  /// Chooses the stages by the plan of the largest phase, and returns them. Where there is no plan,
  /// it returns nothing, and the weights decide.
  [[nodiscard]] std::vector<std::string> divide_by_plan() {
    const size_t index = largest_phase();
    std::vector<std::string> divided;
    try {
      divided = stages_by_plan(subject_of(index, open_data(recipe_, index, data_)), stages_);
      stages_ = divided;
    } catch (const plan::NotPlannable& error) {
      log::info("stages: auto divides by the weights: " + printable(error.reason()));
    } catch (const c10::OutOfMemoryError&) {
      throw;
    } catch (const c10::Error& error) {
      log::info("stages: auto divides by the weights: " +
                printable(error.what_without_backtrace()));
    }
    check_on_meta(model_, [this](Model& model) {
      stages_.resize(std::min(stages_.size(), parallel::cuts_of(model).size() + 1));
    });
    cards_.erase(cards_.begin() + static_cast<std::ptrdiff_t>(stages_.size()), cards_.end());
    target_ = sum_of(cards_);
    if (cards_.size() == 1) cards_.clear();
    return divided;
  }

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
    check_batches(recipe_, index, data.facts, options_.ranks,
                  [&] { return refuses_one(data.facts); });
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
    request.options.stages = stages_;
    request.cards = cards_;
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
  std::vector<std::string> stages_;
  std::vector<plan::Target> cards_;  // of the stages
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
