// MicroBatches: works on a batch in parts, smaller ones while memory is out. Internal.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tare/adapt/search.h"
#include "tare/adapt/size_cache.h"
#include "tare/callback/callback.h"
#include "tare/data/dataset.h"

namespace tare {

/// Throws ConfigError, naming `where`, unless 1 <= samples <= batch.
void check_micro_batch(int64_t samples, int64_t batch, const std::string& where);
/// Throws ConfigError, naming the option, for a first micro-batch that is neither 0, for none, nor
/// one of 1 to `batch` samples.
void check_first_micro_batch(int64_t samples, int64_t batch, const std::string& where,
                             const std::string& option);

/// Holds a part of a batch, and its share of the batch's mean loss.
struct BatchPart {
  Batch batch{};  ///< views
  double share = 1;
  std::optional<double> counted{};  ///< what its mean loss is over; unset for a whole batch
};

/// Divides a batch into the fewest consecutive parts of at most `size` samples, nearly equal, the
/// larger ones first: batch norm needs more than one sample, if it can be. A batch that is one part
/// stays as it is.
[[nodiscard]] std::vector<Batch> slices_of(const Batch& whole, int64_t size);

/// Cuts a batch into parts of at most `size` samples: slices_of(), or a plan's own function.
using Slicer = std::function<std::vector<Batch>(const Batch& whole, int64_t size)>;

/// Returns the slices of a batch with their shares, by what the loss counts in a batch: a part
/// without any label has share 0. If no slice has one, the shares are by the samples. A single
/// slice is a whole batch.
[[nodiscard]] std::vector<BatchPart> parts_of(const std::vector<Batch>& slices,
                                              const std::function<double(const Batch&)>& counted);

/// Holds the size of the parts in one phase of a Learner's life: fixed, or found by what memory
/// allows and remembered by the shape of the samples.
class MicroBatches {
 public:
  struct Settings {
    const char* phase = "";          ///< "train", "validate" or "predict"
    std::optional<int64_t> fixed{};  ///< LearnerOptions::micro_batch
    int64_t batch = 1;               ///< the largest size
    c10::Device device = c10::kCPU;
    adapt::Options search{};  ///< start, fixed_bytes and suggest; the rest is set here
  };
  /// Starts with `settings`; `sizes` must outlive this object.
  MicroBatches(Settings settings, adapt::SizeCache& sizes);
  MicroBatches(const MicroBatches&) = delete;
  MicroBatches& operator=(const MicroBatches&) = delete;

  /// Calls work(size), again with a smaller size as long as memory is out; see
  /// adapt::Search::attempt. A fixed size is tried once.
  template <class Work, class Undo>
  auto attempt(const Batch& whole, Work&& work, Undo&& undo) {
    const int64_t samples = whole.size();
    if (settings_.fixed || samples == 0) return work(settings_.fixed.value_or(samples));
    adapt::Search& search = search_for(whole);
    search.clear_history();
    return search.attempt(samples, work, undo);
  }

  /// Calls report(MicroBatchChange) for each change since the last call.
  template <class Report>
  void take_changes(Report&& report) {
    for (auto& change : std::exchange(changes_, {})) report(std::move(change));
  }

 private:
  adapt::Search& search_for(const Batch& whole);
  void note(const adapt::Change& change);

  Settings settings_;
  adapt::SizeCache& sizes_;
  std::vector<int64_t> shape_;  // of the inputs of the samples that search_ is for
  std::optional<adapt::Search> search_;
  std::vector<MicroBatchChange> changes_;
};

}  // namespace tare
