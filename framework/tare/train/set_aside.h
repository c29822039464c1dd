// SetAside: the state of a Learner from before a search, which is put back after it. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tare/model/generators.h"
#include "tare/train/learner_state.h"

namespace tare {

/// Copies everything that a fit changes: weights that train, buffers, optimizer, random generators,
/// gradients, modes of the modules, progress, sizes of micro-batches. The copies lie on the host,
/// and are in the Learner's ledger. Frozen weights are copied only for a Task, whose functions may
/// change them.
class SetAside {
 public:
  /// Takes the state, and the gradients themselves. Keeps a reference to `state`, which outlives
  /// it. Waits for the device. Throws OutOfMemory; StateError for the state of an optimizer of
  /// torch::optim whose class is not known.
  explicit SetAside(LearnerState& state);
  ~SetAside();
  SetAside(const SetAside&) = delete;
  SetAside& operator=(const SetAside&) = delete;

  /// Puts everything back; once. What was not allocated before is freed. Waits for the device.
  void restore();
  /// Puts back what is no memory of a device, after an error of a card whose memory is lost.
  void restore_host();
  /// Lists the copies.
  void account(Ledger& ledger) const;

 private:
  struct Copy {
    at::Tensor tensor{}, values{};  // no values: in a plan of a card, whose host does not count
  };
  [[nodiscard]] at::Tensor copied(const at::Tensor& tensor) const;
  void copy_optimizer();
  void restore_optimizer();

  LearnerState& state_;
  std::vector<Copy> weights_;
  LearnerState::Gradients gradients_;
  GeneratorSnapshot generators_;
  EvaluationScope modes_;
  bool had_optimizer_ = false;
  std::vector<NamedTensor> optimizer_state_;
  std::vector<std::vector<ParameterGroup>> groups_;  // of each optimizer
  std::vector<ParameterGroup> all_groups_;           // of all as one
  double made_with_rate_;
  int64_t epochs_done_, restored_epoch_;
  std::optional<ValidationRow> restored_validation_;
  bool lent_figures_;
  size_t rows_;
  std::optional<Unfinished> pending_;
  std::optional<BundleData> trained_on_;
  std::optional<GradScaler> scaler_;
  std::vector<adapt::FoundSize> sizes_;
  std::vector<std::string> recomputing_;
};

}  // namespace tare
