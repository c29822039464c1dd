// Feed: the batches of an epoch on the Learner's device. Internal.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>

#include "tare/data/loader.h"
#include "tare/memory/side_work.h"
#include "tare/train/learner_state.h"

namespace tare {

/// Gives the batches of a Loader on the device of a Learner. On a card the loader pins them, so
/// that no copy waits for the card; with threads of the loader each batch is copied while the card
/// computes with the one before, so that two of them are on the card. What goes wrong with a batch
/// is thrown when it is its turn. One thread, as for Loader.
class Feed {
 public:
  /// Keeps a reference to `state`, which outlives it. Throws what Loader throws.
  Feed(LearnerState& state, DatasetPtr data, LoaderOptions options);
  ~Feed();
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  /// Begins an epoch, see Loader::start().
  void start(int64_t epoch, int64_t position = 0, std::optional<int64_t> end = {});
  /// Releases the tensors of `batch` and fills it with the next batch; false at the epoch's end.
  bool next(Batch& batch) {
    if (side_) return next_ahead(batch);
    if (!loader_.next(batch)) return false;
    state_.to_device(batch);
    return true;
  }
  /// Ends the epoch and frees the batches made ahead.
  void stop();
  [[nodiscard]] int64_t batches() const { return loader_.batches(); }
  /// Returns how many samples of the batch are this rank's, see Loader::own_samples().
  [[nodiscard]] int64_t own_samples(int64_t index) const { return loader_.own_samples(index); }
  /// Adds the batches made ahead, see Loader::account().
  void account(Ledger& ledger) const;

 private:
  struct Ahead {
    Batch on_host{};
    std::optional<Batch> on_device{};  // unset: there was no memory for it
    bool is_there = false;             // else the epoch has ended
    std::exception_ptr error{};
  };
  bool next_ahead(Batch& batch);
  [[nodiscard]] Ahead fetch();
  void copy_ahead(Ahead& next);
  void drop_ahead();

  LearnerState& state_;
  Loader loader_;
  std::optional<memory::SideWork> side_;  // unset: nothing is copied ahead
  std::optional<Ahead> ahead_;
};

}  // namespace tare
