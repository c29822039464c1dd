// Implements the functions that pruners have in common.
#include "tare/search/pruner.h"

#include <algorithm>

#include "tare/base/error.h"

namespace tare::search {

std::optional<Promotion> Pruner::next_promotion(bool, const std::vector<SeenTrial>&) const {
  return std::nullopt;
}

std::vector<SeenTrial> Pruner::competitors(const Study&, const std::vector<SeenTrial>& history,
                                           int64_t) const {
  return history;
}

PruneResult decide(const Pruner& pruner, const Study& study, const std::vector<SeenTrial>& history,
                   int64_t number) {
  const auto found = std::ranges::find(history, number, &SeenTrial::number);
  if (found == history.end() || found->reports.empty())
    throw StateError("sweep.decide", "without a report of trial " + std::to_string(number));
  return pruner.decide(study, history, *found);
}

}  // namespace tare::search
