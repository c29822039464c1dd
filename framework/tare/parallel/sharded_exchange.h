// ShardedExchange: gradients, and parameters if wanted, of which each rank keeps its own part.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "tare/model/block.h"
#include "tare/model/model.h"
#include "tare/parallel/data_parallel_options.h"
#include "tare/parallel/sharded_optimizer.h"

namespace tare::parallel {

/// Averages gradients over the ranks of a group, so that after a backward each rank has the
/// gradients of the parameters that it owns, and no others (stage 2 of Rajbhandari et al. 2020,
/// "ZeRO"). A bucket of gradients is sent to its owners while the backward computes the next one,
/// and freed when the next one is sent.
///
/// With DataParallelOptions::shard `parameters` each rank also keeps the values of its own
/// parameters alone (stage 3). Those of a block (block.h) are on all ranks while the block
/// computes, in the forward and again in the backward; a bucket is the gradients of a block.
/// Parameters outside of blocks are on all ranks from the first forward of a step to close().
/// While it lives, the parameters share storages, of which those of other ranks may be empty.
///
/// Holds hooks on the parameters as long as it lives, and observes the blocks of the thread that
/// has made it. All ranks make it, use it and destroy it in one order, and compute in one order.
/// Not thread-safe.
class ShardedExchange {
  struct State;

 public:
  /// Takes the shard of this rank and the model, whose parameters are equal on all ranks. The group
  /// and the module outlive it. Throws ConfigError where no parameter is trained, RankError,
  /// OutOfMemory.
  ShardedExchange(const Shard& shard, const Model& model, const DataParallelOptions& options);
  /// Leaves the parameters that another rank owns NaN, unless restore() came before.
  ~ShardedExchange();
  ShardedExchange(const ShardedExchange&) = delete;
  ShardedExchange& operator=(const ShardedExchange&) = delete;

  /// Begins a step, or the step again after an error: drops what an earlier one has left.
  void begin_step();
  /// Gives this rank the parameters outside of blocks, for a forward.
  void open();
  /// Lets the next backward average its gradients.
  void average_next();
  /// Waits, after a backward, for the gradients under way. Those that earlier backwards of the step
  /// left to this rank's parameters are added. Throws ConfigError, naming them, for parameters that
  /// the backward has left out, unless DataParallelOptions::find_unused makes them 0.
  void finish();
  /// Frees the parameters of other ranks.
  void close();

  /// Gives the parameters storages of their own again, with the values of their owners.
  void restore();

  /// Gives this rank all parameters as long as it lives; then each rank keeps what its own have
  /// become. All ranks make it together, as all exchanges.
  class Whole {
   public:
    /// Takes the exchange, which outlives it; null: it does nothing. Throws RankError, OutOfMemory.
    explicit Whole(ShardedExchange* exchange);
    ~Whole();
    Whole(const Whole&) = delete;
    Whole& operator=(const Whole&) = delete;

   private:
    State* state_;
    std::vector<size_t> opened_{};  // units
  };

 private:
  std::unique_ptr<State> state_;
};

/// Clips gradients of which each rank has a part. A bound on the norm holds for the joint norm of
/// the gradients of all ranks.
void clip_sharded(const std::vector<ParameterGroup>& groups, const ClipOptions& options,
                  Group& group);

}  // namespace tare::parallel
