// scale(): what a step takes on many devices by a model, in bytes for each rank and in seconds.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tare/plan/link.h"

namespace tare::plan {

/// Names a way to divide a training over ranks.
enum class Strategy {
  data_parallel,  ///< each rank has everything, and a part of the batch
  zero1,          ///< likewise, but the optimizer's state of the parameters that it owns
  zero2,          ///< and the gradients of these only
  zero3,          ///< and these parameters only: those of a block are gathered while it computes
  pipeline        ///< each rank has a stage of the model
};
/// Returns "data parallel", "ZeRO-1" ... "pipeline"; static.
[[nodiscard]] const char* to_string(Strategy strategy);

/// Describes a parameter.
struct ScaleParameter {
  std::string name{};         ///< in the model
  int64_t bytes = 0;          ///< of its values
  int64_t trained_bytes = 0;  ///< of its gradient; 0: it is frozen
  int64_t state_bytes = 0;    ///< of the optimizer's state for it
  size_t unit = 0;            ///< index of the unit that has it
};

/// Describes a part of a model that computes at once: a block, or a module between blocks.
struct ScaleUnit {
  std::string name{};        ///< of the module
  bool is_block = false;     ///< see Block (model/block.h)
  double share = 0;          ///< of the computation of a step; those of all units sum to 1
  int64_t output_bytes = 0;  ///< that it gives to the next one for a sample; 0: no stage ends here
};

/// Describes a step of a training. Bytes are those of one data parallel rank of `ranks`.
struct ScaleWork {
  int64_t ranks = 1;         ///< >= 1
  int64_t batch = 1;         ///< samples of a step on all ranks, >= 1
  int64_t parts = 1;         ///< micro-batches of a rank's part, >= 1
  int64_t bytes = 0;         ///< allocated at the peak, the start included
  int64_t cached_bytes = 0;  ///< what the allocator holds beyond them
  int64_t buffer_bytes = 0;  ///< of buffers, which rank 0 gives to all in each step
  /// Holds the bytes of strategies that were planned; those of the others are computed.
  std::map<Strategy, int64_t> planned_bytes{};
  std::vector<ScaleParameter> parameters{};  ///< in order of registration
  std::vector<ScaleUnit> units{};            ///< in the order in which they compute
  /// Seconds that one device computes for a sample, forward and backward; unset: unknown.
  std::optional<double> sample_s{};
  double forward_share = 1.0 / 3;     ///< of these seconds, the share of the forward
  double bucket_bytes = 25 * 0x1p20;  ///< see parallel::DataParallelOptions
  double sent_share = 1;              ///< of the gradients' bytes; 0.5: they are sent in half of it

  /// Returns the samples of the rank with most.
  [[nodiscard]] int64_t own_samples() const { return (batch + ranks - 1) / ranks; }
};

/// Describes a training with one strategy. Seconds are 0, and the rates too, where the time of a
/// sample is unknown.
struct ScaleRow {
  Strategy strategy = Strategy::data_parallel;  ///< how the training is divided
  int64_t stages = 1;  ///< of a pipeline; ranks / stages pipelines work on parts of the batch
  int64_t micro_batches = 1;  ///< that go through a pipeline in a step
  int64_t bytes = 0;          ///< allocated at the peak by the rank with most
  bool is_planned = false;    ///< whether a plan gives them; else they are computed
  bool fits = true;           ///< whether these and what the allocator holds are in the capacity
  double compute_s = 0;       ///< in which the slowest rank computes
  double exchange_s = 0;      ///< in which the network works for it, also beside the computation
  double step_s = 0;          ///< of the step
  double samples_per_s = 0;   ///< of all ranks
  double efficiency = 0;      ///< by `ranks` times the rate of one device that is alone
};

/// Returns a row for each strategy that is possible: for one rank only data parallel, and no
/// pipeline for a model without blocks. Of the pipelines, whose number of stages divides the ranks,
/// it is the fastest that fits, or else the one with the fewest bytes.
///
/// The bytes of data parallel are given, and of the others where they were planned. Else they are
/// those of data parallel less what a rank does not keep. By owners_of()
/// (parallel/sharded_optimizer.h) a rank keeps whole parameters. Beside its own gradients a rank
/// with ZeRO-2 or ZeRO-3 holds two buckets of them, one that is under way and one that is computed;
/// a bucket of ZeRO-3 is a block. Beside its own values a rank with ZeRO-3 holds those of one block
/// and those outside of blocks. A pipeline holds the activations of all micro-batches (Huang et al.
/// 2019, "GPipe").
///
/// The time is a model. Data parallel and ZeRO-1 sum the gradients in buckets while the last
/// backward computes; see all_reduce_s(). ZeRO-2 and ZeRO-3 reduce them to their owners in each
/// micro-batch. ZeRO-1 and ZeRO-2 end with the broadcasts of the parameters by their owners; in
/// ZeRO-3 they come before the forward and the backward of each block, which wait for them
/// (Rajbhandari et al. 2020, "ZeRO", sections 5 and 7). A pipeline of S stages and M micro-batches
/// takes M + S - 1 times the slowest stage's time for one, of which (S - 1) / (M + S - 1) is idle
/// (Huang et al. 2019, section 2.3), and M is at most 4 S. Each step has the two exchanges by which
/// ranks agree, of which the first is beside the forward. The optimizer's step, the loader and the
/// contention of exchange and computation for memory and cores are not in the model.
///
/// Throws ConfigError for a number of ranks, a batch or parts below 1.
[[nodiscard]] std::vector<ScaleRow> scale(const ScaleWork& work, const Cluster& cluster,
                                          int64_t capacity_bytes);

/// Returns the row that takes the least time of those that fit; null: none fits, or the times are
/// unknown.
[[nodiscard]] const ScaleRow* fastest(const std::vector<ScaleRow>& rows);

}  // namespace tare::plan
