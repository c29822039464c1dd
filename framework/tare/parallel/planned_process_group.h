// PlannedProcessGroup: exchanges that take the memory of real ones, and go to nobody. Internal.
#pragma once

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <vector>

namespace tare::parallel {

/// Is a group of ranks for a plan, of which only this one is there. Tensors keep their values, and
/// an exchange is over when it begins.
class PlannedProcessGroup final : public c10d::ProcessGroup {
 public:
  PlannedProcessGroup(int rank, int size);

  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors,
                                           const c10d::BroadcastOptions& options) override;
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override;
  c10::intrusive_ptr<c10d::Work> reduce(std::vector<at::Tensor>& tensors,
                                        const c10d::ReduceOptions& options) override;
  c10::intrusive_ptr<c10d::Work> barrier(const c10d::BarrierOptions& options) override;

 private:
  std::vector<at::Tensor> under_way_;  // that the reducer has made to send
};

}  // namespace tare::parallel
