// The names that Keras, PyTorch Lightning, fastai and torch have for what has another name in Tare.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tare {

/// Returns the candidate that a well-known name stands for, "batch" for "batch_size"; empty: there
/// is none. A candidate may be the path of a key, or its last part. Case, hyphens and underscores
/// make no difference, so that "ModelCheckpoint" is "model_checkpoint".
[[nodiscard]] std::string familiar(std::string_view name,
                                   const std::vector<std::string>& candidates);

/// Returns the path of the recipe's key that a well-known name stands for, "phases.N.lr" for
/// "learning_rate"; empty: there is none.
[[nodiscard]] std::string familiar_key(std::string_view name);

/// Returns what to know about a well-known name of a key, such as what micro_batch counts for
/// "accumulate_grad_batches", as a part of a sentence; empty: nothing.
[[nodiscard]] std::string familiar_note(std::string_view name);

}  // namespace tare
