// The plan of a whole recipe, and which recipes have equal plans.
#include "tare/recipe/recipe_plan.h"

#include <algorithm>
#include <map>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/callback/registry.h"
#include "tare/recipe/phase_data.h"
#include "tare/runtime/does_not_fit.h"

namespace tare {
namespace {

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
  else if (phase->largest_batch == 0 && phase->largest_micro_batch == 0)
    text += "; no batch fits";
  if (phase->largest_batch > 0)
    text += "; the largest batch that fits is " + std::to_string(phase->largest_batch);
  if (phase->largest_micro_batch > 0)
    text += "; micro_batch: auto would take parts of " + std::to_string(phase->largest_micro_batch);
  const std::string batch = samples_path(recipe, static_cast<size_t>(phase - plan.phases.begin()));
  const std::string place = recipe.file.place(batch).str();
  if (recipe.file.has(batch)) text += "; " + batch + " stands at " + printable(place);
  const bool some_batch = phase->largest_batch > 0 || phase->largest_micro_batch > 0;
  return text +
         (some_batch ? "; set a lower " + batch + " or a smaller model"
                     : "; set a smaller model or a higher budget") +
         ", or run with --no-plan";
}

/// The checkpoints that callbacks save are in a plan; the rest of what they do is not.
void keep_those_that_save(std::vector<CallbackChoice>& chosen) {
  std::erase_if(chosen, [](const CallbackChoice& choice) {
    return !callbacks::registry().make(choice)->facts().saves_epochs;
  });
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

RecipeOptions without_what_no_plan_needs(RecipeOptions recipe) {
  const RecipeOptions plain;
  recipe.name = plain.name;
  recipe.folder = plain.folder;
  recipe.learner.seed = plain.learner.seed;
  recipe.export_to.reset();
  const auto settle = [](double& value, double some) { value = value > 0 ? some : 0; };
  auto& optimizer = recipe.learner.optimizer;
  // With its state or without; a kind that has no momentum takes none.
  if (momentum_of(optimizer) > 0) optimizer.momentum = 0.9;
  if (momentum_of(optimizer) == 0 && optimizer.momentum) optimizer.momentum = 0;
  settle(optimizer.weight_decay, plain.learner.optimizer.weight_decay);
  settle(recipe.learner.clip.norm, 1);
  settle(recipe.learner.clip.value, 1);
  keep_those_that_save(recipe.callbacks);
  optimizer.lr = plain.learner.optimizer.lr;
  optimizer.beta2 = plain.learner.optimizer.beta2;
  optimizer.eps = plain.learner.optimizer.eps;
  std::map<std::string, std::string> saved;  // by the name in the recipe
  for (auto& phase : recipe.phases) {
    const PhaseOptions as_made;
    phase.lr = as_made.lr;
    keep_those_that_save(phase.callbacks);
    if (const auto found = saved.find(phase.load); found != saved.end()) phase.load = found->second;
    if (!phase.save.empty())
      phase.save = saved[phase.save] = "saved-" + std::to_string(saved.size());
    phase.schedule = {};  // which takes any momentum
  }
  return recipe;
}

}  // namespace tare
