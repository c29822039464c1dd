// LentWeights: weights of a callback in the model for the time of a validation. Internal.
#pragma once

#include <vector>

#include "tare/callback/callback.h"

namespace tare {

/// Returns the model's own weights when it is destroyed, also where the validation throws.
class LentWeights {
 public:
  /// Changes nothing yet; both must outlive this.
  LentWeights(const std::vector<CallbackPtr>& callbacks, Model& model)
      : callbacks_(callbacks), model_(model) {}
  ~LentWeights() {
    while (lent_ > 0) callbacks_[--lent_]->return_weights(model_);
  }
  LentWeights(const LentWeights&) = delete;
  LentWeights& operator=(const LentWeights&) = delete;

  /// Lets the callbacks put theirs into the model, and returns whether one did. Throws what they
  /// throw; those before have then lent theirs.
  bool lend() {
    bool any = false;
    for (; lent_ < callbacks_.size(); ++lent_)
      any = callbacks_[lent_]->lend_weights(model_) || any;
    return any;
  }

 private:
  const std::vector<CallbackPtr>& callbacks_;
  Model& model_;
  size_t lent_ = 0;  // how many have lent theirs
};

}  // namespace tare
