// DataParallel: gradients that are averaged over the ranks while the backward computes them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tare/config/field.h"
#include "tare/model/model.h"
#include "tare/parallel/group.h"

namespace tare::parallel {

/// Sets how gradients are exchanged. The defaults are those of PyTorch's DistributedDataParallel.
struct DataParallelOptions {
  double bucket_mib = 25;  ///< of gradients that are sent at once, > 0
  /// Whether a backward may leave parameters without a gradient, which is then 0; costs a search of
  /// the graph in each step.
  bool find_unused = false;
  /// Whether each step uses the same parameters in the same order, which saves that search.
  bool static_graph = false;
  /// Whether batch norms that train normalise over the parts of all ranks, see SyncBatchNormScope,
  /// and not over that of each rank. Batches are then not cut into micro-batches.
  bool sync_batch_norm = false;
  /// none | optimizer: what each rank keeps a part of, and not the whole: see ShardedOptimizer.
  std::string shard = "none";
  /// none | fp16: the dtype in which gradients are sent.
  std::string compression = "none";
  bool operator==(const DataParallelOptions&) const = default;
};
void visit_fields(auto& visit, DataParallelOptions& o) {
  visit("bucket_mib", o.bucket_mib, config::above(0));
  visit("find_unused", o.find_unused);
  visit("static_graph", o.static_graph);
  visit("sync_batch_norm", o.sync_batch_norm);
  visit("shard", o.shard, config::one_of({"none", "optimizer"}));
  visit("compression", o.compression, config::one_of({"none", "fp16"}));
}

/// Averages the gradients of parameters over the ranks of a group by LibTorch's c10d::Reducer: as
/// soon as a bucket of them is complete it is sent, while the backward goes on. The gradients are
/// views of the buckets, so that no copy of them is kept. Holds hooks on the parameters as long as
/// it lives. All ranks make it, use it and destroy it in one order.
class DataParallel {
 public:
  /// Takes the parameters that are trained, equal in number, shape and order on all ranks; `group`
  /// outlives it. Throws ConfigError where the ranks have others, RankError.
  DataParallel(Group& group, const std::vector<NamedTensor>& parameters,
               const DataParallelOptions& options = {});
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  /// Begins a step, before its forward. After the first one the buckets are made anew in the order
  /// in which the backward completes gradients.
  void begin_step();
  /// Lets the next backward average the gradients that it completes, with what earlier backwards
  /// have added to them. `loss` is what that backward begins with.
  void average_next(const at::Tensor& loss);

  /// Holds mean times of the steps that were timed, in nanoseconds.
  struct Times {
    int64_t steps = 0;             ///< that were timed
    int64_t forward_ns = 0;        ///< of the forward
    int64_t backward_ns = 0;       ///< of the computation of the backward
    int64_t communication_ns = 0;  ///< from the first bucket that is sent to the last one
    int64_t overlap_ns = 0;        ///< in which both are under way
  };
  /// Returns the times that LibTorch takes in the first 10 steps, then in each 100th.
  [[nodiscard]] Times times() const;
  /// Returns the bytes of the buckets.
  [[nodiscard]] int64_t bucket_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tare::parallel
