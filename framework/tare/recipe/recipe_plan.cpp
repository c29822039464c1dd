// The plan of a whole recipe, and which recipes have equal plans.
#include "tare/recipe/recipe_plan.h"

#include <algorithm>
#include <map>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/callback/registry.h"
#include "tare/memory/context.h"
#include "tare/recipe/phase_data.h"
#include "tare/runtime/does_not_fit.h"
#include "tare/trace/target.h"

namespace tare {
namespace {

int64_t least(const std::vector<MemoryPlan>& phases, int64_t MemoryPlan::*figure) {
  int64_t result = phases.empty() ? 0 : phases.front().*figure;
  for (const auto& phase : phases) result = std::min(result, phase.*figure);
  return result;
}

using Phases = std::vector<size_t>;  // their numbers

Phases unfit_phases(const RecipePlan& plan) {
  Phases unfit;
  for (size_t i = 0; i < plan.phases.size(); ++i)
    if (plan.phases[i].known() && !plan.phases[i].runs()) unfit.push_back(i);
  return unfit;
}

/// Returns "phase 'all' with batch 64 in micro-batches of 16", the latter where the recipe sets
/// them.
std::string title_of(const RecipeOptions& recipe, const RecipePlan& plan, size_t phase) {
  const MemoryPlan& planned = plan.phases[phase];
  const auto parts = micro_batch_of(recipe, recipe.phases[phase]);
  return "phase '" + printable(planned.name) + "' with batch " + std::to_string(planned.batch) +
         (parts && *parts < planned.batch ? " in micro-batches of " + std::to_string(*parts) : "");
}

bool has_batch(const MemoryPlan& phase) {
  return phase.largest_batch > 0 || phase.largest_micro_batch > 0;
}

/// Returns " needs 99.6 KiB, in backward, sum", with the figures that a plan prints, and which
/// batch fits.
std::string need_of(const MemoryPlan& phase, int64_t capacity) {
  const int64_t allocated = phase.start_bytes + phase.peak_bytes;
  const int64_t needed = std::max(phase.reserved_bytes, allocated);
  std::string text =
      " needs " + (format_bytes(needed) == format_bytes(capacity)
                       ? format_count(needed) + " of " + format_count(capacity) + " bytes"
                       : format_bytes(needed));
  if (needed > allocated) text += ", as the allocator of the card reserves them";
  if (phase.peak_bytes > 0)
    text += " (start " + format_bytes(phase.start_bytes) + ", planned peak " +
            format_bytes(phase.peak_bytes) + ')';
  text += ", in " + phase.at;
  if (phase.start_bytes >= capacity)
    text += "; its weights and what is kept with them take " + format_bytes(phase.start_bytes) +
            " alone, so no batch fits";
  else if (!has_batch(phase))
    text += "; no batch fits";
  if (phase.largest_batch > 0)
    text += "; the largest batch that fits is " + std::to_string(phase.largest_batch);
  if (phase.largest_micro_batch > 0)
    text += "; the largest micro-batch of this batch is " +
            std::to_string(phase.largest_micro_batch) + ", which micro_batch: auto would take";
  return text;
}

/// Returns the keys that set the batches of the phases, each once.
std::vector<std::string> batch_keys(const RecipeOptions& recipe, const Phases& phases) {
  std::vector<std::string> keys;
  for (const size_t phase : phases) {
    const std::string key = samples_path(recipe, phase);
    if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  }
  return keys;
}

std::string advice_for(const RecipeOptions& recipe, const RecipePlan& plan, const Phases& unfit) {
  const auto keys = batch_keys(recipe, unfit);
  std::string text;
  for (const auto& key : keys)
    if (recipe.file.has(key))
      text += "; " + key + " stands at " + printable(recipe.file.place(key).str());
  const bool some_batch =
      std::ranges::all_of(unfit, [&](size_t phase) { return has_batch(plan.phases[phase]); });
  return text +
         (some_batch ? "; set a lower " + listed(keys) + " or a smaller model"
                     : "; set a smaller model or a higher budget") +
         (recipe.learner.step_in_backward
              ? ", or step_in_backward=false, with which a phase can run in micro-batches"
              : "") +
         ", or run with --no-plan";
}

/// Points to the processes that hold a part of the card's memory; empty: there is no such part.
std::string others_on_card(const RecipePlan& plan) {
  if (!plan.total_bytes) return "";
  const int64_t held = *plan.total_bytes - plan.capacity_bytes;
  if (held <= memory::kContextBytes) return "";  // which this process holds itself
  return "; `tare top` shows which processes hold the rest of the card: end them, or take another "
         "card";
}

std::string refusal(const RecipeOptions& recipe, const RecipePlan& plan) {
  const Phases unfit = unfit_phases(plan);
  const bool one = unfit.size() == 1;
  std::string text = "[recipe.plan] " +
                     (one ? title_of(recipe, plan, unfit.front()) + " does not fit "
                          : std::to_string(unfit.size()) + " phases do not fit ") +
                     plan.device + ", which has " +
                     plan::capacity_text(plan.capacity_bytes, plan.total_bytes) + ": ";
  for (const size_t i : unfit) {
    const MemoryPlan& phase = plan.phases[i];
    text += (i == unfit.front() ? "" : "; ") + (one ? "it" : title_of(recipe, plan, i)) +
            need_of(phase, plan.capacity_bytes);
  }
  return text + others_on_card(plan) + advice_for(recipe, plan, unfit);
}

/// The checkpoints that callbacks save are in a plan, and what they do in the planned fit.
void keep_those_in_a_plan(std::vector<CallbackChoice>& chosen) {
  std::erase_if(chosen, [](const CallbackChoice& choice) {
    const CallbackPtr callback = callbacks::registry().make(choice);
    const CallbackFacts facts = callback->facts();
    return !facts.saves_epochs && !facts.saves_steps && facts.bytes_on_card == 0 &&
           !callback->planned();
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
  recipe.export_formats.clear();
  recipe.export_fold_norms = false;
  recipe.export_opset = plain.export_opset;
  recipe.export_tolerance.reset();
  const auto settle = [](double& value, double some) { value = value > 0 ? some : 0; };
  auto& optimizer = recipe.learner.optimizer;
  // With its state or without; a kind that has no momentum takes none.
  if (momentum_of(optimizer) > 0) optimizer.momentum = 0.9;
  if (momentum_of(optimizer) == 0 && optimizer.momentum) optimizer.momentum = 0;
  settle(optimizer.weight_decay, plain.learner.optimizer.weight_decay);
  settle(recipe.learner.clip.norm, 1);
  settle(recipe.learner.clip.value, 1);
  keep_those_in_a_plan(recipe.callbacks);
  optimizer.lr = plain.learner.optimizer.lr;
  optimizer.beta2 = plain.learner.optimizer.beta2;
  optimizer.eps = plain.learner.optimizer.eps;
  std::map<std::string, std::string> saved;  // by the name in the recipe
  for (auto& phase : recipe.phases) {
    const PhaseOptions as_made;
    if (phase.lr && phase.lr->search())
      phase.lr = LrFindOptions{};  // it takes memory
    else
      phase.lr = as_made.lr;
    keep_those_in_a_plan(phase.callbacks);
    if (const auto found = saved.find(phase.load); found != saved.end()) phase.load = found->second;
    if (!phase.save.empty())
      phase.save = saved[phase.save] = "saved-" + std::to_string(saved.size());
    phase.schedule = {};  // which takes any momentum
    phase.schedules = {};
  }
  return recipe;
}

}  // namespace tare
