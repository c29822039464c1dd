// Follows the forwards and backwards of a divided model over its devices.
#include "tare/plan/stage_watch.h"

#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <utility>

#include "tare/trace/trace_stages.h"
#include "tare/train/fit_loop.h"

namespace tare {
namespace {

constexpr const char* kLossSum = "loss_sum";  // in the ledger of a fit
constexpr const char *kFrom = "from", *kThen = "then";

/// Allocates what at::Tensor::to() allocates on another device, and its gradient on the device of
/// the stage `from`. The backward goes on in the stage `then`.
struct StageCopy : torch::autograd::Function<StageCopy> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& input,
                            int64_t from, int64_t then) {
    ctx->saved_data[kFrom] = from;
    ctx->saved_data[kThen] = then;
    return at::empty_like(input);
  }
  static std::vector<at::Tensor> backward(torch::autograd::AutogradContext* ctx,
                                          const std::vector<at::Tensor>& gradients) {
    plan::mark_stage(static_cast<size_t>(ctx->saved_data[kFrom].toInt()));
    at::Tensor gradient = at::empty_like(gradients.front());
    plan::mark_stage(static_cast<size_t>(ctx->saved_data[kThen].toInt()));
    return {std::move(gradient), at::Tensor(), at::Tensor()};
  }
};

}  // namespace

StageWatch::StageWatch(LearnerState& state) : state_(state) {
  for (const std::string& name : state.model.blocks()) {
    const torch::nn::Module& block = state.model.submodule(name);
    const auto& all = state.model.parameters();
    const auto first = std::ranges::find_if(
        all, [&](const Parameter& one) { return one.name.starts_with(name + '.'); });
    if (first != all.end()) of_blocks_[&block] = *state.stages.stage_of(first->name);
  }
  state_.before_forward = [this] { begin(0); };
}

StageWatch::~StageWatch() { state_.before_forward = nullptr; }

void StageWatch::begin(size_t stage) {
  now_ = stage;
  plan::mark_stage(stage);
}

void StageWatch::take(const torch::nn::Module& block, std::vector<at::Tensor>& inputs) {
  const auto found = of_blocks_.find(&block);
  if (found == of_blocks_.end() || found->second == now_) return;
  const auto from = static_cast<int64_t>(now_);
  begin(found->second);
  for (at::Tensor& input : inputs)
    if (input.defined()) input = StageCopy::apply(input, from, from);
}

at::Tensor StageWatch::beside(const at::Tensor& tensor) {
  const auto from = plan::stage_of(tensor);
  if (!from || *from == now_) return tensor;
  return StageCopy::apply(tensor, static_cast<int64_t>(*from), static_cast<int64_t>(now_));
}

namespace {

/// Lists the copies of buffers that a step keeps, under the names of the buffers.
Ledger copies_of_buffers(const LearnerState& state) {
  Ledger ledger;
  const auto& buffers = state.model.buffers();
  const std::vector<at::Tensor> copies =
      state.loop ? state.loop->snapshot().copies() : std::vector<at::Tensor>();
  for (size_t i = 0; i < copies.size(); ++i)
    ledger.add(Category::workspace, buffers[i].name, copies[i]);
  return ledger;
}

}  // namespace

void note_stages(const LearnerState& state, const Ledger& ledger) {
  const size_t last = state.stages.size() - 1;
  std::vector<std::string> targets;
  for (const NamedTensor& target : state.data.train->first_sample().targets)
    targets.push_back(target.name);
  plan::note_stages(copies_of_buffers(state),
                    [&](const LedgerEntry& entry) { return state.stages.stage_of(entry.name); });
  plan::note_stages(ledger, [&](const LedgerEntry& entry) -> std::optional<size_t> {
    if (entry.name == kLossSum) return last;
    if (entry.category != Category::batch)
      return state.stages.stage_of(entry.name.substr(entry.name.rfind('/') + 1));
    return std::ranges::find(targets, entry.name) == targets.end() ? 0 : last;
  });
}

}  // namespace tare
