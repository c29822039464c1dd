// Batches of a data set in the order of an epoch, made ahead by worker threads.
#pragma once

#include <cstdint>
#include <memory>

#include "tare/data/dataset.h"
#include "tare/memory/accountable.h"

namespace tare {

struct LoaderOptions {
  int64_t batch = 64;      ///< samples in a batch, >= 1
  bool shuffle = false;    ///< a permutation that depends on (seed, epoch) only
  bool drop_last = false;  ///< leave out a last batch that is not full
  int64_t workers =
      0;  ///< threads that make batches, 0 to 256; 0: the caller's thread makes them in next()
  int64_t prefetch = 2;  ///< batches made ahead, >= 1, at least one a worker; each costs its bytes;
                         ///< without workers none
  uint64_t seed = 0;     ///< of the run
  bool training = false;  ///< random transforms act
};

/// Gives the batches of one epoch after the other. The batches are the same for any number of
/// workers. Not thread-safe: one consumer, which also constructs and destroys. After an exception
/// from next() the loader is stopped and may be started again. Destruction at any moment is safe
/// and joins the workers.
class Loader {
 public:
  /// Throws ConfigError for null or empty data, an option out of range, and drop_last with fewer
  /// samples than a batch.
  Loader(DatasetPtr data, const LoaderOptions& options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Begins an epoch (>= 0) at batch `position` in [0, batches()]; what was under way is dropped.
  /// Workers start here.
  void start(int64_t epoch, int64_t position = 0);
  /// Lets the tensors of `batch` go, then gives the next batch; false at the end of the epoch and
  /// leaves `batch` empty. Rethrows what a worker threw, at the batch where it happened. Throws
  /// StateError before start() or after stop().
  bool next(Batch& batch);
  /// Ends the epoch: joins the workers and frees the batches made ahead.
  void stop();

  [[nodiscard]] int64_t position()
      const;  ///< batches given out in this epoch: where start() goes on from
  [[nodiscard]] int64_t batches() const;  ///< in a whole epoch
  [[nodiscard]] const DatasetPtr& data() const;
  [[nodiscard]] const LoaderOptions& options() const;

  /// Adds the batches made ahead under Category::batch. Waits until the workers have filled the
  /// buffer and rest, so that the figure holds until the next call of next() or start().
  void account(Ledger& ledger) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tare
