// Sends batches to the device of a Learner, and notes what they are.
#include <ATen/ops/empty_like.h>

#include <utility>
#include <vector>

#include "tare/data/loader.h"
#include "tare/memory/side_work.h"
#include "tare/metric/check.h"
#include "tare/train/learner_state.h"

namespace tare {
namespace {

/// Is inlined, because it is a part of every step. The batches of a data set have one name for
/// their first input.
[[gnu::always_inline]] inline void note_inputs(LearnerState& state, const Batch& batch) {
  if (!batch.inputs.empty()) {
    const NamedTensor& first = batch.inputs.front();
    if (const auto type = first.tensor.scalar_type(); state.seen_input != type) {
      state.seen_input = type;
      state.seen_name = first.name;
    }
  }
  if (batch.inputs.size() > 1 || !state.seen_more.empty()) state.seen_more = more_inputs(batch);
}

/// Copies labels, in the order of a contiguous tensor.
std::vector<int64_t> labels_in(const at::Tensor& target) {
  const at::Tensor flat = target.contiguous();
  const int64_t* const first = flat.const_data_ptr<int64_t>();
  return {first, first + flat.numel()};
}

/// Is not inlined, so that a step on the host does without its frame.
[[gnu::noinline]] void send(LearnerState& state, Batch& batch) {
  const Batch on_host = std::exchange(batch, state.ready_to_send(batch));
  const auto send_to = [](c10::Device device, auto& list) {
    for (NamedTensor& named : list) named.tensor = named.tensor.to(device, /*non_blocking=*/true);
  };
  send_to(state.device, batch.inputs);
  send_to(state.output_device(), batch.targets);
  state.note_batch(on_host, batch);
}

}  // namespace

bool LearnerState::converts_inputs() const {
  return precision == Precision::bf16_true || options.kernels.channels_last;
}

void LearnerState::convert_inputs(Batch& batch) const {
  for (NamedTensor& input : batch.inputs) {
    if (precision == Precision::bf16_true && input.tensor.is_floating_point())
      input.tensor = input.tensor.to(c10::kBFloat16);
    if (options.kernels.channels_last && input.tensor.dim() == 4)
      input.tensor = input.tensor.contiguous(c10::MemoryFormat::ChannelsLast);
  }
}

Batch LearnerState::ready_to_send(const Batch& on_host) const {
  Batch batch = on_host;
  convert_inputs(batch);
  if (pins) pin(batch);
  return batch;
}

void LearnerState::note_batch(const Batch& on_host, const Batch& on_device) {
  note_inputs(*this, on_host);
  sent.clear();
  for (size_t i = 0; i < on_host.targets.size(); ++i) {
    const at::Tensor& target = on_device.targets[i].tensor;
    const auto range = label_range(loss, on_host.targets[i].tensor);
    sent.push_back({.range = range,
                    .target = target.storage().unsafeGetStorageImpl(),
                    .version = target._version(),
                    .first = target.storage_offset(),
                    .elements = target.numel(),
                    .labels = range && target.is_contiguous() ? labels_in(on_host.targets[i].tensor)
                                                              : std::vector<int64_t>()});
  }
}

void LearnerState::to_device(Batch& batch) {
  if (!device.is_cpu()) return send(*this, batch);
  note_inputs(*this, batch);
  if (converts_inputs()) convert_inputs(batch);
}

Batch LearnerState::copied(const Batch& on_host, memory::SideWork& side) const {
  const Batch batch = ready_to_send(on_host);
  const std::vector<at::Tensor> from = batch.tensors();
  std::vector<at::Tensor> to = from;
  for (at::Tensor& tensor : to)
    if (tensor.is_cpu())
      tensor = at::empty_like(tensor, tensor.options().device(device).pinned_memory(false));
  side.run([&] {
    for (size_t i = 0; i < from.size(); ++i)
      if (from[i].is_cpu()) to[i].copy_(from[i], /*non_blocking=*/true);
  });
  return batch.with(to);
}

}  // namespace tare
