// StageWatch: the copies between the devices of a divided model, in the trace of a plan. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <unordered_map>
#include <vector>

#include "tare/model/block.h"
#include "tare/train/learner_state.h"

namespace tare {

/// Marks in a trace, while in scope, which stage of a model that lives on several cards is at work,
/// and allocates the copies that a block makes of inputs from another card. All cards of a plan are
/// the meta device, where blocks copy nothing themselves.
class StageWatch final : public BlockObserver {
 public:
  /// Watches the forwards of `state`, which must outlive this.
  explicit StageWatch(LearnerState& state);
  ~StageWatch() override;

  void take(const torch::nn::Module& block, std::vector<at::Tensor>& inputs) override;
  at::Tensor beside(const at::Tensor& tensor) override;
  void enter(const torch::nn::Module&) override {}
  void leave(const torch::nn::Module&, const at::Tensor&) override {}

 private:
  void begin(size_t stage);

  LearnerState& state_;
  std::unordered_map<const torch::nn::Module*, size_t> of_blocks_;
  size_t now_ = 0;
};

/// Says in the trace of a plan where the named storages of the ledger of `state` are.
void note_stages(const LearnerState& state, const Ledger& ledger);

}  // namespace tare
