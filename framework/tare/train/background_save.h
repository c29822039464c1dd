// BackgroundSave: the checkpoints of a fit, written by a thread from copies of its state. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <future>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tare/train/learner_state.h"

namespace tare {

/// Writes one checkpoint of a fit at a time. The fit waits while the state is copied; a thread
/// writes the copies as checkpoint::save() writes a state, so that the older checkpoint stays until
/// the new one is whole. The copies lie on the host and are kept for the next save. Destruction
/// waits for the write under way. One thread calls the methods, that of the fit.
class BackgroundSave {
 public:
  /// Keeps a reference to `state`, which outlives it.
  explicit BackgroundSave(LearnerState& state) : state_(state) {}
  BackgroundSave(const BackgroundSave&) = delete;
  BackgroundSave& operator=(const BackgroundSave&) = delete;

  /// Allocates the copies that a save takes, so that a fit which has begun has the memory for it.
  /// In the plan of a card it allocates nothing, because the copies lie on the host. Throws
  /// OutOfMemory.
  void prepare(const std::vector<CallbackPtr>& callbacks);
  /// Copies the state and begins to write it as the checkpoint `name`. Waits for the write before
  /// and for the device. `done` gets the result, see LearnerView::try_save(); empty: an error is
  /// thrown where the result is taken. Throws what finish() throws; ConfigError for a name that is
  /// no single path component; OutOfMemory.
  void start(const std::string& name, const SaveDone& done);
  /// Takes the result of a write that has ended. Throws its error, if nobody else gets it.
  void poll();
  /// Waits for the write under way, and takes its result as poll() does.
  void finish();
  /// Lists the copies.
  void account(Ledger& ledger) const;

 private:
  /// Identifies a view of a storage: two equal ones have one copy, so that tied weights stay tied.
  using View = std::tuple<const void*, int64_t, c10::ScalarType, bool, std::vector<int64_t>,
                          std::vector<int64_t>>;
  void copy(const std::string& part, std::vector<NamedTensor>& tensors);
  [[nodiscard]] at::Tensor copied(const std::string& name, const at::Tensor& source);
  void take_result();

  LearnerState& state_;
  std::map<std::string, at::Tensor> copies_;  // by part and name
  std::map<View, at::Tensor> made_;           // of the save under way
  SaveDone done_;
  std::future<void> write_;  // is destroyed first, which waits
};

}  // namespace tare
