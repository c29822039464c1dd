// Autosave: periodic checkpoints during a fit, so that a crash loses little work.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "tare/callback/callback.h"

namespace tare {

/// Saves a checkpoint every `every` steps of a fit, alternating between the two names(): while one
/// is written the other is intact, so there is always one to resume from. A save that fails, for
/// whatever reason, is logged as a warning and training continues; the next save uses the same
/// name.
class Autosave final : public Callback {
 public:
  /// Saves after each `every` >= 0 optimizer steps; 0: only when write() is called. Throws
  /// ConfigError.
  explicit Autosave(int64_t every);

  /// Returns the two checkpoint names that alternate.
  [[nodiscard]] static std::vector<std::string> names();
  /// Calls `save` with the name whose turn it is. Returns false if it threw, which is logged.
  bool write(const std::function<void(const std::string& name)>& save);
  /// Saves in a fit, under the name whose turn it is once the save before has ended. A thread may
  /// write it, see LearnerView::try_save().
  void save(LearnerView& learner);
  /// Whether the last save that has ended failed.
  [[nodiscard]] bool failed() const { return failed_; }

  [[nodiscard]] std::string name() const override { return "autosave"; }
  Action before_fit(FitContext& context) override;
  Action after_batch(FitContext& context) override;
  [[nodiscard]] std::string state() const override;
  void load_state(const std::string& json) override;

 private:
  [[nodiscard]] size_t begin_save();
  void end_save(size_t turn_before, const std::exception_ptr& error);

  int64_t every_;
  int64_t seen_step_ = 0;
  size_t turn_ = 0;  // of the last save, or of the one under way
  bool failed_ = false;
  bool has_one_ = false;  // a checkpoint was written
};

}  // namespace tare
