// JsonlLog: steps and epochs of a fit as lines of JSON.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "tare/callback/callback.h"
#include "tare/config/field.h"

namespace tare {

/// Configures JsonlLog.
struct JsonlLogOptions {
  std::filesystem::path file = "log.jsonl";  ///< relative paths are below the Learner's folder
  /// Steps between two that are written; 0: every step at first, and half as many after each 1,000.
  int64_t every = 0;
};
void visit_fields(auto& visit, JsonlLogOptions& o) {
  visit("file", o.file);
  visit("every", o.every, config::at_least(0));
}

/// Writes `file` with an object in each line. Of a step: {"type": "step", "step", "epoch", "loss",
/// "lr", "time"}; of an epoch: {"type": "epoch", "step", "epoch", "train_loss", "valid_loss",
/// "metrics": {NAME: value}, "seconds", "samples", "time"}; of a validation inside an epoch:
/// {"type": "validation", ...} with the keys of an epoch, whose training loss, seconds and samples
/// are those of the epoch so far. A number that is not finite is null.
/// `step` is counted over all fits with the object, `time` is seconds since 1970.
///
/// Lines are on the disk at the end of each epoch. The first fit begins the file anew, a resumed
/// one cuts off what was written beyond its checkpoint. A write that fails is logged as a warning,
/// and the training continues.
class JsonlLog final : public Callback {
 public:
  /// Throws ConfigError for an option out of range.
  explicit JsonlLog(JsonlLogOptions options = {});
  ~JsonlLog() override;

  [[nodiscard]] std::string name() const override { return "jsonl_log:" + options_.file.string(); }
  Action before_fit(FitContext& context) override;
  Action after_step(FitContext& context) override;
  Action after_validate(FitContext& context) override;
  Action after_epoch(FitContext& context) override;
  Action after_fit(FitContext& context) override;
  [[nodiscard]] CallbackFacts facts() const override;
  void purge() override;
  void account(Ledger& ledger) const override;
  [[nodiscard]] std::string state() const override;
  void load_state(const std::string& json) override;

 private:
  struct Parts;

  JsonlLogOptions options_;
  std::unique_ptr<Parts> parts_;  // state() writes what waits, so that it has a place in the file
};

}  // namespace tare
