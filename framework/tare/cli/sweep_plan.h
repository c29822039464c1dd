// Plans the runs of a sweep: what each needs, and which run together.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tare/launch/executor.h"
#include "tare/recipe/recipe.h"
#include "tare/sweep/placement.h"
#include "tare/sweep/sweep_options.h"

namespace tare::cli {

/// Predicts the memory that runs will need; each plan is made once.
class Plans {
 public:
  /// Plans runs of `ranks` ranks for the device of a slot, whose memory is known, so that this
  /// process makes no context on a card. `download` is set if the runs follow, which would download
  /// their data anyway.
  Plans(std::filesystem::path recipe, const launch::DeviceSlot& slot, int64_t ranks, bool download)
      : recipe_(std::move(recipe)), ranks_(ranks), download_(download) {
    if (slot.is_gpu()) capacity_bytes_ = slot.total_bytes - slot.context_bytes;
  }

  /// Returns the highest bytes of a rank's tensors over the phases; unset if a phase cannot be
  /// predicted.
  /// Throws ConfigError for settings that the recipe refuses.
  std::optional<int64_t> bytes(const std::vector<std::string>& settings);

  /// Returns a text that is equal for runs that need equal memory.
  [[nodiscard]] std::string signature(const std::vector<std::string>& settings) const;

 private:
  [[nodiscard]] RecipeOptions needed(const std::vector<std::string>& settings) const;
  [[nodiscard]] std::optional<int64_t> planned(const RecipeOptions& recipe) const;

  std::filesystem::path recipe_;
  int64_t ranks_;
  bool download_;
  std::optional<int64_t> capacity_bytes_;
  std::map<std::string, std::optional<int64_t>> known_;  // by recipe
};

/// Prints the runs of a sweep in the rounds in which they would run together.
class PlannedRounds {
 public:
  /// Plans the runs of `sweep` in the slots of `executor`. `sweep` and `slots` must outlive this.
  PlannedRounds(const sweep::SweepOptions& sweep, const launch::Executor& executor,
                const std::vector<launch::DeviceSlot>& slots);

  void add(const search::Cell& cell);  ///< plans the next run
  void print() const;  ///< prints how many runs there are, where, and each with its round

 private:
  void print_head() const;
  [[nodiscard]] std::string at_a_time() const;
  std::string text_of(const std::vector<std::string>& settings);
  std::string placed(const std::optional<int64_t>& planned);

  const sweep::SweepOptions& sweep_;
  const std::vector<launch::DeviceSlot>& slots_;
  int64_t jobs_ = 0;
  bool has_own_limits_ = false;
  Plans plans_;
  std::vector<sweep::Placed> round_;
  int64_t rounds_ = 1, largest_round_ = 0;
  std::vector<std::string> lines_;  // of the runs
};

}  // namespace tare::cli
