// search_rate(): trains a Learner for a search for a learning rate, and puts it back. Internal.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tare/optim/lr_find.h"
#include "tare/train/learner_state.h"
#include "tare/train/micro_batches.h"

namespace tare {

/// Holds how a search runs.
struct LrSearch {
  LrFindOptions options{};
  /// Returns the settings of the training; called when the state is set aside and the optimizer
  /// made.
  std::function<MicroBatches::Settings()> micro_batches{};
  std::vector<CallbackPtr> callbacks{};  ///< called before that of the search itself
  /// The search is done for a plan: it goes through so many epochs, whose losses have no values.
  int64_t planned_epochs = 0;
};

/// Runs the fit loop with a rate that rises by the same ratio each step, equal for all layer
/// groups; several optimizers keep their ratio. Afterwards, also after an exception, the Learner is
/// as it was. An error of a card loses the memory of that card, so that only the state on the host
/// is restored then. An optimizer is made for the search where there is none. Throws what a fit
/// throws.
[[nodiscard]] LrFindResult search_rate(LearnerState& state, LearnerView& learner, LrSearch search,
                                       const char* call);

}  // namespace tare
