// Ranks: what a fit does together with the other ranks that train. Internal.
#pragma once

#include <exception>
#include <map>
#include <memory>
#include <vector>

#include "tare/callback/callback.h"
#include "tare/optim/optimizer.h"
#include "tare/parallel/data_parallel.h"
#include "tare/parallel/group.h"
#include "tare/parallel/sharded_exchange.h"
#include "tare/parallel/sync_batch_norm.h"
#include "tare/train/loss_meter.h"
#include "tare/train/micro_batches.h"

namespace tare {

struct LearnerState;

/// Holds what a rank wants of the fit, or what all of them want: the strongest answer.
struct Wish {
  Action action = Action::proceed;  ///< of the callbacks
  bool interrupted = false;         ///< a signal has come
  bool out_of_time = false;         ///< the fit has taken all its time
};

/// Returns the sums over all ranks of a group. Waits for them.
[[nodiscard]] LossTotals sum_over(parallel::Group& group, const LossTotals& own);

/// Divides the work of a fit over the ranks of LearnerOptions::group. All ranks call its functions
/// in one order. What they throw beside OutOfMemory is a RankError.
class Ranks {
 public:
  /// Keeps references to `state`, which has a group and outlives it.
  explicit Ranks(LearnerState& state);
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  /// Begins a step of an optimizer, before its forward: gives all ranks the buffers of rank 0, and
  /// begins to exchange what they want and what the mean loss of each rank's part is over.
  void begin_step(Optimizer& optimizer, double counted, const Wish& own);
  /// Waits for what the other ranks have given to begin_step(), which known() returns then. Returns
  /// by what the loss of this rank's part is multiplied, so that the mean of the gradients over the
  /// ranks is the gradient of the mean loss over the whole batch.
  [[nodiscard]] double factor();
  /// Gives this rank the parameters that it needs for a forward.
  void open() {
    if (sharded_) sharded_->open();
  }
  /// Averages the gradients over the ranks in the next backward, which begins with `loss`.
  /// `is_last`: it is that of the last part of a batch; ranks that keep all gradients send them
  /// then.
  void average_next(const at::Tensor& loss, bool is_last);
  /// Does the work of a backward that averages gradients. An error of the exchange becomes a
  /// RankError, or OutOfMemory where another rank ran out of memory.
  template <class Work>
  void exchanging(Work&& work) {
    explaining([&] {
      work();
      if (sharded_) sharded_->finish();
    });
  }
  /// Lets batch norms of this thread normalise over all ranks as long as the result lives, where
  /// the options say so; `counts`: whether the batch of this rank counts.
  [[nodiscard]] std::unique_ptr<parallel::SyncBatchNormScope> norms(bool counts) const;
  /// Returns what keeps parts of the gradients, and of the parameters; null: each rank has all.
  [[nodiscard]] parallel::ShardedExchange* sharded() const { return sharded_.get(); }
  /// Gives all ranks as many parts of their batch, where exchanges belong to each: a rank with
  /// fewer repeats its last one, which does not count there.
  void agree_on_parts(std::vector<BatchPart>& parts);
  /// Whether the gradients of all ranks are finite, where `own` says so of those of this one.
  [[nodiscard]] bool all_finite(bool own);
  /// Clips the gradients of an optimizer by those of all ranks.
  void clip(const std::vector<ParameterGroup>& groups, const ClipOptions& options);
  /// Ends the backwards of a step. If a step is wanted it waits until all ranks have come through
  /// theirs, so that all of them step or none does. Throws OutOfMemory where one of them has not.
  void end_backward(bool wanted);
  /// Begins the step again, on all ranks, after one of them ran out of memory. Throws RankError
  /// where this one ran out of memory behind end_backward(), when the others have stepped.
  void start_over();
  /// Returns what all ranks wanted when the step began.
  [[nodiscard]] const Wish& known() const { return known_; }

  /// Ends the training: each rank has all parameters again. Logs how long the exchange of gradients
  /// took in a step.
  void end();
  /// Returns what all ranks want now. Waits for them.
  [[nodiscard]] Wish settle(const Wish& own);
  /// Tells the other ranks why this one stops, see Group::fail().
  void fail(const std::exception_ptr& error) noexcept { group_.fail(error); }

 private:
  /// Does work that may exchange; what LibTorch throws of an exchange is explained.
  template <class Work>
  void explaining(Work&& work) {
    try {
      work();
    } catch (const std::exception& error) {
      if (!parallel::Group::is_of_exchange(error)) throw;
      group_.explain(error);
    }
  }

  parallel::DataParallel& averaging(Optimizer& optimizer);

  LearnerState& state_;
  parallel::Group& group_;
  std::vector<at::Tensor> buffers_;
  std::map<const Optimizer*, std::unique_ptr<parallel::DataParallel>> averaging_;
  parallel::DataParallel* now_ = nullptr;               // of the step under way
  std::unique_ptr<parallel::ShardedExchange> sharded_;  // in place of them; null: there is none
  parallel::Group::Exchange exchange_;
  double counted_ = 0, factor_ = 1;
  Optimizer* optimizer_ = nullptr;  // of the step under way
  Wish own_;                        // when it began
  bool agreed_ = false;             // to step
  Wish known_;
};

}  // namespace tare
