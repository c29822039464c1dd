// Loader: the batches of an epoch in order, prepared ahead by worker threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "tare/data/dataset.h"
#include "tare/data/sampling.h"
#include "tare/memory/accountable.h"

namespace tare {

/// Sets how a Loader makes batches.
struct LoaderOptions {
  int64_t batch = 64;    ///< samples in a batch, >= 1
  bool shuffle = false;  ///< a permutation that depends on (seed, epoch) only
  /// An epoch has as many samples as the data, but each as often as its weight says, see
  /// weighted_indices(). What is random about a sample then depends on its batch too, so that a
  /// sample that is drawn several times is not drawn alike. Null: every sample once.
  SampleWeights weights{};
  /// Batches have samples of similar length, so that little of them is padding: see
  /// grouped_by_length(). Needs `shuffle`, and samples with lengths.
  bool group_by_length = false;
  bool drop_last = false;  ///< skip a last batch that is not full
  int64_t workers = 0;     ///< threads, 0 to 256; 0: batches are made in next()
  int64_t prefetch = 2;    ///< batches made ahead by workers, >= 1; at least one per worker
  uint64_t seed = 0;       ///< of the run
  bool training = false;   ///< apply random transforms
  /// The loader gives a rank's part of each batch: the parts of `ranks` >= 1 ranks are nearly
  /// equal, the larger ones first, and follow each other. See Loader::own_samples().
  int64_t ranks = 1;
  int64_t rank = 0;  ///< in [0, ranks)
  /// Copies each batch to pinned memory, from which a card copies beside its computation.
  bool pinned = false;
};

/// Copies tensors of the host to pinned memory; those that are pinned stay as they are.
void pin(Batch& batch);

/// Returns the batches of one epoch after the other; the batches do not depend on the number of
/// workers. After an exception from next() it is stopped and may be started again. It may be
/// destroyed at any moment, which joins the workers. Not thread-safe: one thread constructs, uses
/// and destroys it.
class Loader {
 public:
  /// Throws ConfigError for null or empty data, for an option out of range, for weights that
  /// check_weights() refuses, for drop_last with less than a batch, and for group_by_length
  /// without `shuffle` or without lengths.
  Loader(DatasetPtr data, const LoaderOptions& options);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Begins an epoch (>= 0) at batch `position` in [0, batches()] and starts the workers; an
  /// unfinished epoch is dropped. The epoch ends before batch `end`, which is in
  /// [position, batches()], and no batch from there on is made; unset: after the last one.
  void start(int64_t epoch, int64_t position = 0, std::optional<int64_t> end = {});
  /// Releases the tensors of `batch`, then fills it with the next batch; false, with `batch` empty,
  /// at the end of the epoch. Rethrows what a worker threw, at the batch where it happened. Throws
  /// StateError before start() or after stop().
  bool next(Batch& batch);
  /// Ends the epoch: joins the workers and frees the batches made ahead.
  void stop();

  [[nodiscard]] int64_t position() const;  ///< batches given in this epoch; for start() to resume
  [[nodiscard]] int64_t batches() const;   ///< counts the batches of a whole epoch
  /// Returns how many samples of batch `index` in [0, batches()) are this rank's. 0: the batch has
  /// fewer samples than there are ranks, and next() gives its last one, which another rank has too.
  [[nodiscard]] int64_t own_samples(int64_t index) const;
  /// Returns the share of an epoch's batches that padding is, from 0 to 1: of the first input, by
  /// Dataset::sample_size(). Reads no sample.
  [[nodiscard]] double padding_share(int64_t epoch = 0) const;
  [[nodiscard]] const DatasetPtr& data() const;        ///< as it was given
  [[nodiscard]] const LoaderOptions& options() const;  ///< as they were given

  /// Adds the batches made ahead to a ledger, under Category::batch. Waits until the workers are
  /// idle, so that the figure is exact until next() or start() is called.
  void account(Ledger& ledger) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tare
