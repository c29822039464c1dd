// DataParallel: gradients that are averaged over the ranks while the backward computes them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tare/model/model.h"
#include "tare/parallel/data_parallel_options.h"
#include "tare/parallel/group.h"

namespace tare::parallel {

/// Returns the bytes of DataParallelOptions::bucket_mib, at most what any model has.
[[nodiscard]] int64_t bucket_bytes(const DataParallelOptions& options);

/// Averages the gradients of parameters over the ranks of a group by LibTorch's c10d::Reducer: as
/// soon as a bucket of them is complete it is sent, and meanwhile the backward computes the next.
/// The gradients are views of the buckets, so that no copy of them is kept. Holds hooks on the
/// parameters as long as it lives. All ranks make it, use it and destroy it in one order.
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
    int64_t steps = 0;                      ///< that were timed
    int64_t forward_ns = 0;                 ///< of the forward
    int64_t backward_ns = 0;                ///< of the computation of the backward
    int64_t communication_ns = 0;           ///< from the first bucket that is sent to the last one
    int64_t overlap_ns = 0;                 ///< in which both are under way
    [[nodiscard]] std::string str() const;  ///< returns one line
  };
  /// Returns the times that LibTorch takes in the first 10 steps, then in each 100th.
  [[nodiscard]] Times times() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tare::parallel
