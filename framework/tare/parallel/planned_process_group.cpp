// Answers each exchange at once.
#include "tare/parallel/planned_process_group.h"

#include <ATen/core/ivalue.h>

#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <utility>

namespace tare::parallel {
namespace {

/// Is an exchange that is over.
class Over final : public c10d::Work {
 public:
  explicit Over(std::vector<at::Tensor> tensors) : tensors_(std::move(tensors)) {}
  bool isCompleted() override { return true; }
  bool wait(std::chrono::milliseconds /*timeout*/) override { return true; }
  std::vector<at::Tensor> result() override { return tensors_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    auto future =
        c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    future->markCompleted(c10::IValue(tensors_));
    return future;
  }

 private:
  std::vector<at::Tensor> tensors_;
};

c10::intrusive_ptr<c10d::Work> over(std::vector<at::Tensor> tensors) {
  return c10::make_intrusive<Over>(std::move(tensors));
}

/// Says to the reducer that it has no memory of its own to give.
class NoBackend final : public c10d::Backend {
 public:
  using Backend::Backend;
  const std::string getBackendName() const override { return "planned"; }
};

}  // namespace

PlannedProcessGroup::PlannedProcessGroup(int rank, int size) : ProcessGroup(rank, size) {
  setBackend(c10::kCPU, BackendType::CUSTOM, c10::make_intrusive<NoBackend>(rank, size));
  setDefaultBackend(BackendType::CUSTOM);
}

c10::intrusive_ptr<c10d::Work> PlannedProcessGroup::broadcast(
    std::vector<at::Tensor>& tensors, const c10d::BroadcastOptions& /*options*/) {
  return over(tensors);
}

c10::intrusive_ptr<c10d::Work> PlannedProcessGroup::allreduce(
    std::vector<at::Tensor>& tensors, const c10d::AllreduceOptions& /*options*/) {
  // Copies in half precision may all be under way until the ranks agree to step, by numbers.
  for (const at::Tensor& one : tensors)
    if (one.scalar_type() == c10::kHalf)
      under_way_.push_back(one);
    else if (one.scalar_type() == c10::kDouble)
      under_way_.clear();
  return over(tensors);
}

c10::intrusive_ptr<c10d::Work> PlannedProcessGroup::reduce(std::vector<at::Tensor>& tensors,
                                                           const c10d::ReduceOptions& /*options*/) {
  return over(tensors);
}

c10::intrusive_ptr<c10d::Work> PlannedProcessGroup::barrier(
    const c10d::BarrierOptions& /*options*/) {
  return over({});
}

}  // namespace tare::parallel
