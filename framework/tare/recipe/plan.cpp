#include "tare/recipe/plan.h"

#include <algorithm>
#include <optional>

#include "tare/base/bytes.h"
#include "tare/base/log.h"
#include "tare/config/node.h"
#include "tare/data/datasets.h"
#include "tare/learner/learner.h"
#include "tare/learner/plan_fit.h"
#include "tare/memory/does_not_fit.h"
#include "tare/plan/trace.h"
#include "tare/recipe/phase_data.h"

namespace tare {
namespace {

/// The data set of one phase and what making it allocates.
struct MadeData {
  DataOptions options{};
  Splits splits{};
  plan::HostWork work{};
  std::shared_ptr<const BatchWork> train{}, valid{};
};

MadeData make_data(const DataOptions& options, bool download) {
  MadeData data{.options = options};
  const auto network = download ? datasets::Network::allowed : datasets::Network::forbidden;
  data.work = plan::record([&] {
    data.splits = datasets::make(options, network).splits;
    return std::vector<at::Tensor>{};
  });
  return data;
}

class RecipePlanner {
 public:
  RecipePlanner(const RecipeOptions& recipe, const RecipePlanOptions& options)
      : recipe_(recipe),
        options_(options),
        target_(plan::parse_target(options.device.empty() ? recipe.device : options.device)) {}

  RecipePlan run() {
    RecipePlan result{
        .name = recipe_.name, .device = target_.name, .capacity_bytes = target_.capacity_bytes};
    model_ = model_spec();
    for (size_t i = 0; i < recipe_.phases.size(); ++i) result.phases.push_back(plan_phase(i));
    return result;
  }

 private:
  [[nodiscard]] ModelSpec model_spec() {
    ModelOptions options = model_options(recipe_, data_for(recipe_.data).splits);
    options.weights.clear();  // their values do not matter, their sizes are the model's
    models::check(recipe_.model.name, options);
    ModelSpec spec{recipe_.model.name, config::to_yaml(config::to_node(options))};
    check_model_of(spec);
    return spec;
  }

  // A model that reads values while it is made is probed; the run checks it.
  void check_model_of(const ModelSpec& spec) const {
    try {
      const plan::MetaScope meta;
      Model model = models::make(spec);
      check_model(recipe_, model);
    } catch (const plan::CannotTell& error) {
      log::debug("phases are not checked against the model: " + std::string(error.what()));
    }
  }

  // Successive phases often have the same data.
  MadeData& data_for(const DataOptions& options) {
    if (data_ && data_->options == options) return *data_;
    data_.reset();  // one at a time
    return data_.emplace(make_data(options, options_.download));
  }

  [[nodiscard]] MemoryPlan plan_phase(size_t index) {
    const PhaseOptions& phase = recipe_.phases[index];
    MadeData& data = data_for(data_of(recipe_, phase));
    check_data(recipe_, index, data.splits);
    const FitSubject subject = subject_of(index, data);
    MemoryPlan plan = plan_adapted(subject, target_, options_.advice);
    if (!plan.fits && !options_.advice) plan = plan_adapted(subject, target_, true);
    plan.name = name_of(recipe_, index);
    return plan;
  }

  [[nodiscard]] FitSubject subject_of(size_t index, MadeData& data) const {
    FitSubject subject{.model = [this] { return models::make(model_); }, .on_host = !target_.cuda};
    subject.options.loss = recipe_.loss;
    for (const auto& metric : recipe_.metrics) subject.options.metrics.emplace_back(metric);
    subject.options.batch = batch_of(recipe_, recipe_.phases[index], data.splits);
    subject.options.micro_batch = micro_batch_of(recipe_, recipe_.phases[index]);
    subject.options.recompute = recompute_of(recipe_, recipe_.phases[index]);
    subject.options.offload = offload_of(recipe_, recipe_.phases[index]);
    subject.options.precision = recipe_.precision;
    subject.options.step_in_backward = recipe_.step_in_backward;
    subject.options.frozen_weights = recipe_.frozen_weights;
    subject.options.kernels = recipe_.kernels;
    subject.options.optimizer = recipe_.optimizer;
    subject.options.drop_last = recipe_.drop_last;
    subject.options.workers = recipe_.workers;
    if (!data.train) data.train = std::make_shared<BatchWork>(data.splits.train, true);
    if (!data.valid && data.splits.valid)
      data.valid = std::make_shared<BatchWork>(data.splits.valid, false);
    subject.train = data.train;
    subject.valid = data.valid;
    if (subject.on_host) subject.data_set = data.work;
    subject.saves = saves_inside_an_epoch(index, data.splits);
    subject.before = [this, index](Learner& learner) { keep_states(learner, index); };
    subject.set_up = [&phase = recipe_.phases[index]](Learner& learner) {
      if (phase.reset_head) models::reset_head(learner.model());
      learner.freeze_to(phase.freeze_to);
    };
    return subject;
  }

  /// Whether an automatic checkpoint is written after a batch that is not the epoch's short one.
  [[nodiscard]] bool saves_inside_an_epoch(size_t index, const Splits& data) const {
    const int64_t batch = batch_of(recipe_, recipe_.phases[index], data);
    const int64_t samples = data.train->size(), every = recipe_.save_every;
    const int64_t batches = (samples - 1) / batch + 1;
    const bool short_one = samples % batch != 0;
    if (every == 0) return false;
    for (int64_t step = every; step <= batches * recipe_.phases[index].epochs; step += every)
      if (!short_one || step % batches != 0) return true;
    return false;
  }

  /// The optimizer's states that the phases before have left.
  void keep_states(Learner& learner, size_t index) const {
    size_t first = index;
    while (first > 0 && !recipe_.phases[first - 1].clear_opt) --first;
    for (size_t i = first; i < index; ++i) {
      learner.freeze_to(recipe_.phases[i].freeze_to);
      learner.optimizer().prepare();
    }
    // The phase before has left its frozen weights as they are held.
    if (recipe_.frozen_weights != "as_is" && index > 0)
      learner.freeze_to(recipe_.phases[index - 1].freeze_to);
  }

  const RecipeOptions& recipe_;
  const RecipePlanOptions& options_;
  plan::Target target_;
  ModelSpec model_;
  std::optional<MadeData> data_;
};

int64_t least(const std::vector<MemoryPlan>& phases, int64_t MemoryPlan::*figure) {
  int64_t result = phases.empty() ? 0 : phases.front().*figure;
  for (const auto& phase : phases) result = std::min(result, phase.*figure);
  return result;
}

std::string refusal(const RecipeOptions& recipe, const RecipePlan& plan) {
  const auto phase =
      std::ranges::find_if(plan.phases, [](const MemoryPlan& p) { return p.known() && !p.runs(); });
  std::string text = "[recipe.plan] phase '" + printable(phase->name) + "' with batch " +
                     std::to_string(phase->batch) + " does not fit " + plan.device +
                     ", which has " + format_bytes(plan.capacity_bytes) + ": it needs ";
  const int64_t needed = phase->start_bytes + phase->peak_bytes;
  text += needed > plan.capacity_bytes ? format_bytes(needed) + ", in " + phase->at
                                       : "more than that in " + phase->at;
  if (phase->start_bytes >= plan.capacity_bytes)
    text += "; its weights and what is kept with them take " + format_bytes(phase->start_bytes) +
            " alone, so no batch fits";
  if (phase->largest_batch > 0)
    text += "; the largest batch that fits is " + std::to_string(phase->largest_batch);
  if (phase->largest_micro_batch > 0)
    text += "; micro_batch: auto would take parts of " + std::to_string(phase->largest_micro_batch);
  const std::string batch = samples_path(recipe, static_cast<size_t>(phase - plan.phases.begin()));
  const std::string place = recipe.file.place(batch).str();
  if (!place.empty()) text += "; " + batch + " stands at " + printable(place);
  return text + "; lower it or the model, or run with --no-plan";
}

}  // namespace

bool RecipePlan::known() const {
  return std::ranges::all_of(phases, [](const MemoryPlan& p) { return p.known(); });
}
bool RecipePlan::fits() const {
  return std::ranges::all_of(phases, [](const MemoryPlan& p) { return !p.known() || p.fits; });
}
bool RecipePlan::runs() const {
  return std::ranges::all_of(phases, [](const MemoryPlan& p) { return !p.known() || p.runs(); });
}
int64_t RecipePlan::largest_batch() const { return least(phases, &MemoryPlan::largest_batch); }
int64_t RecipePlan::largest_micro_batch() const {
  return least(phases, &MemoryPlan::largest_micro_batch);
}

std::string RecipePlan::method() const {
  std::string worst = "meta";
  for (const auto& phase : phases) {
    if (phase.method == "none" || worst == "meta") worst = phase.method;
  }
  return worst;
}

void require_fit(const RecipeOptions& recipe, const RecipePlan& plan) {
  if (!plan.runs()) throw DoesNotFit(refusal(recipe, plan));
}

RecipePlan plan_recipe(const RecipeOptions& recipe, const RecipePlanOptions& options) {
  check_recipe(recipe);
  check_files(recipe);
  return RecipePlanner(recipe, options).run();
}

RecipeOptions without_what_no_plan_needs(RecipeOptions recipe) {
  const RecipeOptions plain;
  recipe.name = plain.name;
  recipe.folder = plain.folder;
  recipe.seed = plain.seed;
  recipe.export_to.reset();
  const auto settle = [](double& value, double some) { value = value > 0 ? some : 0; };
  auto& optimizer = recipe.optimizer;
  // With its state or without; a kind that has no momentum takes none.
  if (momentum_of(optimizer) > 0) optimizer.momentum = 0.9;
  if (momentum_of(optimizer) == 0 && optimizer.momentum) optimizer.momentum = 0;
  settle(optimizer.weight_decay, plain.optimizer.weight_decay);
  optimizer.lr = plain.optimizer.lr;
  optimizer.beta2 = plain.optimizer.beta2;
  optimizer.eps = plain.optimizer.eps;
  for (auto& phase : recipe.phases) {
    const PhaseOptions as_made;
    phase.lr = as_made.lr;
    phase.best.clear();
    phase.schedule = as_made.schedule;
  }
  return recipe;
}

}  // namespace tare
