// Checkpoints while a run goes on, so that a crash costs little.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tare/callback/callback.h"

namespace tare {

/// Saves a checkpoint every `every` steps of a fit, in turns under the names of names(): while one
/// is written the other stays, so that one that verifies is always there. A save that fails on the
/// disk is a warning, and training goes on: the next one takes the same name again.
class Autosave final : public Callback {
 public:
  /// `every` >= 0 steps; 0: only when write() is called. Throws ConfigError.
  explicit Autosave(int64_t every);

  /// Of the two generations that are kept.
  [[nodiscard]] static std::vector<std::string> names();
  /// Calls `save` with the name whose turn it is. False where it failed with an IoError, which is
  /// logged; anything else passes through.
  bool write(const std::function<void(const std::string& name)>& save);
  /// The last save failed, so what it should have kept is only in memory.
  [[nodiscard]] bool failed() const { return failed_; }

  [[nodiscard]] std::string name() const override { return "autosave"; }
  Action after_batch(FitContext& context) override;
  [[nodiscard]] std::string state() const override;
  void load_state(const std::string& json) override;

 private:
  int64_t every_;
  int64_t seen_step_ = 0;
  size_t turn_ = 0;  // of the last save, or of the one under way
  bool failed_ = false;
};

}  // namespace tare
