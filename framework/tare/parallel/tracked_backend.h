// TrackedBackend: an exchange between devices that releases the tensors of each exchange. Internal.
#pragma once

#include <mutex>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

namespace tare::parallel {

/// Passes exchanges on to another backend, and remembers those of which somebody took the future.
/// LibTorch's reducer waits for that alone, and NCCL's backend holds the tensors of an exchange
/// until wait() of it is called, or until later exchanges. Thread-safe.
class TrackedBackend final : public c10d::Backend {
 public:
  /// Passes on to `to`.
  explicit TrackedBackend(c10::intrusive_ptr<c10d::Backend> to);

  /// Releases the tensors of the exchanges that are remembered, which the device must have done.
  void release();
  /// Remembers an exchange.
  void remember(c10::intrusive_ptr<c10d::Work> work);

  const std::string getBackendName() const override;
  c10::intrusive_ptr<Options> getBackendOptions() override;
  c10::intrusive_ptr<c10d::Work> broadcast(std::vector<at::Tensor>& tensors,
                                           const c10d::BroadcastOptions& options) override;
  c10::intrusive_ptr<c10d::Work> allreduce(std::vector<at::Tensor>& tensors,
                                           const c10d::AllreduceOptions& options) override;
  c10::intrusive_ptr<c10d::Work> reduce(std::vector<at::Tensor>& tensors,
                                        const c10d::ReduceOptions& options) override;
  c10::intrusive_ptr<c10d::Work> allgather(std::vector<std::vector<at::Tensor>>& to,
                                           std::vector<at::Tensor>& from,
                                           const c10d::AllgatherOptions& options) override;
  c10::intrusive_ptr<c10d::Work> _allgather_base(at::Tensor& to, at::Tensor& from,
                                                 const c10d::AllgatherOptions& options) override;
  c10::intrusive_ptr<c10d::Work> reduce_scatter(std::vector<at::Tensor>& to,
                                                std::vector<std::vector<at::Tensor>>& from,
                                                const c10d::ReduceScatterOptions& options) override;
  c10::intrusive_ptr<c10d::Work> _reduce_scatter_base(
      at::Tensor& to, at::Tensor& from, const c10d::ReduceScatterOptions& options) override;

 private:
  c10::intrusive_ptr<c10d::Work> tracked(c10::intrusive_ptr<c10d::Work> work);

  c10::intrusive_ptr<c10d::Backend> to_;
  std::mutex mutex_;
  std::vector<c10::intrusive_ptr<c10d::Work>> works_;
};

}  // namespace tare::parallel
