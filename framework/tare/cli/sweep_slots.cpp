// Finds the slots of a sweep, and names the cards that take no runs.
#include "tare/cli/sweep_slots.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/cli/sweep_check.h"
#include "tare/runtime/absent_device.h"
#include "tare/runtime/device_name.h"
#include "tare/runtime/does_not_fit.h"
#include "tare/runtime/init.h"
#include "tare/sweep/gpu_slots.h"
#include "tare/sweep/resources.h"
#include "tare/trace/measurements.h"

namespace tare::cli {
namespace {

using launch::DeviceSlot;
using Slots = std::vector<DeviceSlot>;

constexpr std::string_view kCards = "cuda";

/// Names the cards of the slots, in their order, as those that are visible: to CUDA, if it is not
/// initialised yet, and to gpu_slots().
void see_only(const Slots& slots) {
  std::string names;
  for (const auto& slot : slots) names += (names.empty() ? "" : ",") + slot.name;
  setenv("CUDA_VISIBLE_DEVICES", names.c_str(), 1);
}

/// Returns the slots that CUDA shows to one process: of slices of divided cards the first alone.
Slots shown_at_once(const Slots& slots) {
  if (!slots.empty() && sweep::is_slice(slots.front())) return {slots.front()};
  auto cards = slots;
  std::erase_if(cards, sweep::is_slice);
  return cards;
}

/// Returns the number of a card in "cuda:1"; unset: it is another name.
std::optional<size_t> number_of(const std::string& device) {
  const auto parts = runtime::parts_of(device);
  if (!parts || parts->type != kCards || !parts->index) return std::nullopt;
  return static_cast<size_t>(*parts->index);
}

/// Says why a card without capacity takes no runs.
std::string why_full(const DeviceSlot& card) {
  if (card.total_bytes == 0) return "nothing is free on it, or its driver does not say how much";
  return "out of memory: " + format_bytes(card.total_bytes) +
         " are free, and context and libraries of a run take " + format_bytes(card.context_bytes) +
         "; end other processes on the card, which `tare top` shows, or take another card";
}

/// Holds the cards that take runs, and describes those that do not.
struct Cards {
  Slots slots;
  std::vector<std::string> unused;  // "cuda:0 (GPU-8f2b): why"
  bool any_full = false;            // of those that are not used

  void refuse(const DeviceSlot& card, const std::string& why) {
    unused.push_back(printable(card.full_name()) + ": " + why);
  }
};

/// Returns the cards that `device` means, by what is free on them.
Cards cards_of(const std::string& device, const sweep::Resources& resources) {
  Slots all = sweep::visible_gpus(std::getenv("CUDA_VISIBLE_DEVICES"));
  if (const auto number = number_of(device)) {
    const Slots numbered = shown_at_once(all);
    all = *number < numbered.size() ? Slots{numbered[*number]} : Slots{};
  }
  Cards cards;
  for (auto& card : all) {
    card.jobs = resources.max_per_gpu;
    if (resources.ranks > 1 && sweep::is_slice(card)) {
      cards.refuse(card, "a process sees one slice alone, and the ranks of a run need one each");
      continue;
    }
    if (sweep::has_capacity(card)) {
      cards.slots.push_back(card);
      continue;
    }
    cards.refuse(card, why_full(card));
    cards.any_full = true;
  }
  return cards;
}

/// Removes the slots of cards that LibTorch cannot use. CUDA must have been initialised after
/// see_only(shown), so that it numbers the cards as `shown`. The slots that are not in `shown` are
/// usable if any is.
void remove_unusable(Cards& cards, const Slots& shown) {
  const auto absent = runtime::absent_devices();
  for (const DeviceSlot& slot : std::exchange(cards.slots, {})) {
    const auto number = std::ranges::find(shown, slot.name, &DeviceSlot::name);
    const std::string name = "cuda:" + std::to_string(number - shown.begin());
    const auto found = std::ranges::find_if(
        absent, [&](const auto& device) { return device.name == kCards || device.name == name; });
    if (found == absent.end())
      cards.slots.push_back(slot);
    else
      cards.refuse(slot, found->why);
  }
}

/// Throws where the recipe asks for a card and there is no slot on one: DoesNotFit, as a run there
/// does, where memory is what lacks.
void refuse_without_card(const RecipeOptions& recipe, const Cards& cards) {
  const std::string& device = recipe.learner.device;
  if (!device.starts_with(kCards)) return;
  std::string why;
  for (const auto& card : cards.unused) why += (why.empty() ? "" : "; ") + card;
  if (why.empty()) {
    (void)runtime::parse_device(device);  // throws, with the reason, where CUDA has none either
    why = "NVIDIA's management library, by which a sweep finds cards, does not know it";
  }
  const ConfigError error(recipe.file.place("device"), "device",
                          "has no card that can be used: " + why, "auto, another card, cpu",
                          device);
  if (cards.any_full) throw DoesNotFit(error.what());
  throw error;
}

void warn_of_unused(const Cards& cards) {
  for (const auto& card : cards.unused) log::warning("[sweep] no run is placed on " + card);
  if (cards.slots.empty() && !cards.unused.empty())
    log::warning("[sweep] the runs use the host, because no card takes them");
}

/// Sets the number of threads of a run for the plans: an operator's memory depends on its threads.
void start(const sweep::SweepOptions& sweep, const Slots& slots) {
  const int64_t threads =
      sweep::threads_of_each(sweep::jobs_in(slots, sweep.resources) * sweep.resources.ranks);
  init({.threads = static_cast<int>(threads)});
  plan::measurements().keep_in(io::cache_home() / "plan");
}

/// Returns the slots on cards; empty: the runs use the host.
Slots slots_on_cards(const sweep::SweepOptions& sweep) {
  const RecipeOptions recipe = shared_recipe(sweep);
  Cards cards;
  if (recipe.learner.device != "cpu") cards = cards_of(recipe.learner.device, sweep.resources);
  const Slots shown = shown_at_once(cards.slots);
  const bool hides = !cards.unused.empty() || !cards.slots.empty();
  if (hides) see_only(shown);
  start(sweep, cards.slots.empty() ? Slots{sweep::host_slot(sweep.resources)} : cards.slots);
  remove_unusable(cards, shown);
  if (hides) see_only(cards.slots);
  if (cards.slots.empty()) refuse_without_card(recipe, cards);
  warn_of_unused(cards);
  return std::move(cards.slots);
}

}  // namespace

bool names_card(const std::string& device) { return number_of(device).has_value(); }

std::vector<DeviceSlot> prepared_slots(const sweep::SweepOptions& sweep,
                                       const launch::Executor& executor) {
  auto slots = executor.slots(sweep.resources.jobs);
  if (!slots.empty())
    start(sweep, slots);
  else
    slots = slots_on_cards(sweep);
  if (slots.empty()) slots.push_back(sweep::host_slot(sweep.resources));
  try {
    sweep::check_ranks_fit(slots, sweep.resources);
  } catch (const ConfigError& error) {
    throw at_its_place(sweep, error);
  }
  if (sweep.origin.needs_gpu && !slots.front().is_gpu())
    throw ConfigError("tare sweep",
                      "there is no GPU, and meta.allow_cpu is false; with true the "
                      "runs use the CPU");
  return slots;
}

std::vector<DeviceSlot> slots_of(const sweep::SweepOptions& sweep, const launch::Executor& executor,
                                 const sweep::Resources& resources, const Slots& prepared) {
  auto slots = executor.slots(resources.jobs);
  if (!slots.empty()) return slots;
  if (shared_recipe(sweep).learner.device != "cpu")
    slots = sweep::gpu_slots(resources, std::getenv("CUDA_VISIBLE_DEVICES"));
  for (DeviceSlot& slot : slots) {  // the variable has been changed: the user counts otherwise
    const auto same = std::ranges::find(prepared, slot.name, &DeviceSlot::name);
    slot.device = same == prepared.end() ? "" : same->device;
  }
  if (slots.empty()) slots.push_back(sweep::host_slot(resources));
  return slots;
}

}  // namespace tare::cli
