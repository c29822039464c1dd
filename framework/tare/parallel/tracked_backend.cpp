// Remembers exchanges whose futures are waited for, and releases their tensors.
#include "tare/parallel/tracked_backend.h"

#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>

namespace tare::parallel {
namespace {

/// Is an exchange of the other backend, which is remembered when its future is taken.
class TrackedWork final : public c10d::Work {
 public:
  TrackedWork(c10::intrusive_ptr<c10d::Work> work, c10::intrusive_ptr<TrackedBackend> by)
      : work_(std::move(work)), by_(std::move(by)) {}

  bool isCompleted() override { return work_->isCompleted(); }
  bool isSuccess() const override { return work_->isSuccess(); }
  std::exception_ptr exception() const override { return work_->exception(); }
  std::vector<at::Tensor> result() override { return work_->result(); }
  void synchronize() override { work_->synchronize(); }
  bool wait(std::chrono::milliseconds timeout) override { return work_->wait(timeout); }
  void abort() override { work_->abort(); }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    by_->remember(work_);
    return work_->getFuture();
  }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
  c10::intrusive_ptr<TrackedBackend> by_;
};

}  // namespace

TrackedBackend::TrackedBackend(c10::intrusive_ptr<c10d::Backend> to)
    : c10d::Backend(to->getRank(), to->getSize()), to_(std::move(to)) {}

void TrackedBackend::remember(c10::intrusive_ptr<c10d::Work> work) {
  const std::lock_guard lock(mutex_);
  works_.push_back(std::move(work));
}

void TrackedBackend::release() {
  std::vector<c10::intrusive_ptr<c10d::Work>> works;
  {
    const std::lock_guard lock(mutex_);
    works.swap(works_);
  }
  for (const auto& work : works) work->wait();
}

c10::intrusive_ptr<c10d::Work> TrackedBackend::tracked(c10::intrusive_ptr<c10d::Work> work) {
  return c10::make_intrusive<TrackedWork>(
      std::move(work), c10::intrusive_ptr<TrackedBackend>::unsafe_reclaim_from_nonowning(this));
}

const std::string TrackedBackend::getBackendName() const { return to_->getBackendName(); }

c10::intrusive_ptr<c10d::Backend::Options> TrackedBackend::getBackendOptions() {
  return to_->getBackendOptions();
}

c10::intrusive_ptr<c10d::Work> TrackedBackend::broadcast(std::vector<at::Tensor>& tensors,
                                                         const c10d::BroadcastOptions& options) {
  return tracked(to_->broadcast(tensors, options));
}

c10::intrusive_ptr<c10d::Work> TrackedBackend::allreduce(std::vector<at::Tensor>& tensors,
                                                         const c10d::AllreduceOptions& options) {
  return tracked(to_->allreduce(tensors, options));
}

c10::intrusive_ptr<c10d::Work> TrackedBackend::reduce(std::vector<at::Tensor>& tensors,
                                                      const c10d::ReduceOptions& options) {
  return tracked(to_->reduce(tensors, options));
}

c10::intrusive_ptr<c10d::Work> TrackedBackend::allgather(std::vector<std::vector<at::Tensor>>& to,
                                                         std::vector<at::Tensor>& from,
                                                         const c10d::AllgatherOptions& options) {
  return tracked(to_->allgather(to, from, options));
}

c10::intrusive_ptr<c10d::Work> TrackedBackend::_allgather_base(
    at::Tensor& to, at::Tensor& from, const c10d::AllgatherOptions& options) {
  return tracked(to_->_allgather_base(to, from, options));
}

c10::intrusive_ptr<c10d::Work> TrackedBackend::reduce_scatter(
    std::vector<at::Tensor>& to, std::vector<std::vector<at::Tensor>>& from,
    const c10d::ReduceScatterOptions& options) {
  return tracked(to_->reduce_scatter(to, from, options));
}

c10::intrusive_ptr<c10d::Work> TrackedBackend::_reduce_scatter_base(
    at::Tensor& to, at::Tensor& from, const c10d::ReduceScatterOptions& options) {
  return tracked(to_->_reduce_scatter_base(to, from, options));
}

}  // namespace tare::parallel
