// Plans the runs of a sweep, and prints the plan.
#include "tare/cli/sweep_plan.h"

#include <algorithm>
#include <iostream>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/terminal.h"
#include "tare/cli/sweep_slots.h"
#include "tare/recipe/plan.h"
#include "tare/recipe/read_recipe.h"
#include "tare/search/sampler.h"
#include "tare/search/value_text.h"
#include "tare/sweep/resources.h"
#include "tare/sweep/run_name.h"

namespace tare::cli {

std::optional<int64_t> Plans::bytes(const std::vector<std::string>& settings) {
  const auto recipe = needed(settings);
  const std::string key = config::to_yaml(config::to_node(recipe));
  const auto known = known_.find(key);
  return known != known_.end() ? known->second : known_.emplace(key, planned(recipe)).first->second;
}

std::string Plans::signature(const std::vector<std::string>& settings) const {
  return config::to_yaml(config::to_node(needed(settings)));
}

RecipeOptions Plans::needed(const std::vector<std::string>& settings) const {
  RecipeOptions recipe = without_what_no_plan_needs(read_recipe(recipe_, settings));
  if (capacity_bytes_ && names_card(recipe.learner.device)) recipe.learner.device = kCardOfRun;
  return recipe;
}

std::optional<int64_t> Plans::planned(const RecipeOptions& recipe) const {
  int64_t bytes = 0;
  for (const MemoryPlan& phase : plan_recipe(recipe, {.capacity_bytes = capacity_bytes_,
                                                     .advice = false,
                                                     .ranks = ranks_,
                                                     .download = download_})
                                     .phases) {
    if (!phase.known()) return std::nullopt;
    bytes = std::max(bytes, phase.reserved_bytes);
  }
  return bytes;
}

PlannedRounds::PlannedRounds(const sweep::SweepOptions& sweep, const launch::Executor& executor,
                             const std::vector<launch::DeviceSlot>& slots)
    : sweep_(sweep),
      slots_(slots),
      jobs_(sweep::jobs_in(slots, sweep.resources)),
      has_own_limits_(executor.has_own_memory_limits()),
      plans_(sweep.recipe, slots.front(), sweep.resources.ranks, /*download=*/false) {}

/// Returns how many runs are together in a round, and what allows no more.
std::string PlannedRounds::at_a_time() const {
  if (rounds_ == 1 || largest_round_ == jobs_) return std::to_string(jobs_) + " at a time";
  return std::to_string(largest_round_) + " at a time of the " + std::to_string(jobs_) +
         " that are allowed, because no more fit into the memory";
}

void PlannedRounds::print_head() const {
  const std::string ranks = std::to_string(sweep_.resources.ranks);
  std::string head = sweep_.name + ": " + std::to_string(lines_.size()) +
                     (search::draws(sweep_) ? " initial runs" : " runs") +
                     (sweep_.resources.ranks > 1 ? " of " + ranks + " ranks, " : ", ") +
                     at_a_time() + ", in";
  for (const auto& slot : slots_) {
    const std::string place = slot.is_gpu() ? slot.full_name() + ' ' : "";
    head += ' ' + (slot.is_remote() ? slot.name : place + format_bytes(slot.total_bytes));
  }
  std::cout << fitted(head, std::cout) << '\n';
  const std::string legend = sweep::name_legend(sweep_);
  if (!legend.empty()) std::cout << fitted(legend, std::cout) << '\n';
  if (has_own_limits_)
    std::cout << fitted("memory is planned as for this machine; the executor '" +
                            sweep_.executor.name +
                            "' limits its runs itself, and what it allows is not known here",
                        std::cout)
              << '\n';
}

void PlannedRounds::add(const search::Cell& cell) {
  constexpr size_t kLongest = 4096;  // values, on the line of their run
  const auto name = sweep::run_name(sweep_, std::ssize(lines_), cell);
  lines_.push_back(name + "  " + text_of(sweep::settings_of(sweep_, cell, name)) + "  " +
                   printable(search::python_text(cell), kLongest));
}

void PlannedRounds::print() const {
  print_head();
  for (const std::string& line : lines_) std::cout << fitted(line, std::cout) << '\n';
}

/// Returns the round and the memory of a run, or why its recipe is refused.
std::string PlannedRounds::text_of(const std::vector<std::string>& settings) {
  try {
    return placed(plans_.bytes(settings));
  } catch (const ConfigError& error) {
    return std::string("is refused: ") + error.what();
  }
}

std::string PlannedRounds::placed(const std::optional<int64_t>& planned) {
  const int64_t asked = sweep::reservation(sweep_, planned);
  const size_t count = sweep::slots_of_run(slots_, sweep_.resources);
  const int64_t ranks = sweep::ranks_in_slot(slots_, sweep_.resources);
  const sweep::Waiting waiting{.bytes = asked > 0 ? (asked + slots_.front().context_bytes) * ranks
                                                  : slots_.front().total_bytes};
  auto place = sweep::next_start(slots_, round_, {waiting}, count);
  if (!place || static_cast<int64_t>(round_.size()) == jobs_) {
    round_.clear();
    ++rounds_;
    place = sweep::next_start(slots_, round_, {waiting}, count);
  }
  round_.push_back({place->devices, place->bytes});
  largest_round_ = std::max(largest_round_, std::ssize(round_));
  std::string text = "round " + std::to_string(rounds_) + "  planned " +
                     (planned ? format_bytes(*planned) : "cannot be predicted") +
                     (planned && sweep_.resources.ranks > 1 ? " for each rank" : "");
  if (!has_own_limits_) text += ", reserves " + format_bytes(place->bytes);
  if (slots_.size() == 1) return text;
  text += place->devices.size() > 1 ? " on each of " : " of ";
  for (const size_t device : place->devices)
    text += (device == place->devices.front() ? "" : ", ") + slots_[device].short_name();
  return text;
}

}  // namespace tare::cli
