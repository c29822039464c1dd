// StopFile: ends a fit when a file appears.
#pragma once

#include <filesystem>
#include <string>

#include "tare/callback/callback.h"
#include "tare/config/field.h"

namespace tare {

/// Configures StopFile.
struct StopFileOptions {
  std::filesystem::path file =
      "stop";  ///< no folder; a relative path is below the Learner's folder
};
void visit_fields(auto& visit, StopFileOptions& o) { visit("file", o.file); }

/// Ends the fit after the step in which the file is there, as a callback does that answers
/// stop_fit: the epoch is validated and gets its row. The file stays, so that a later fit with the
/// callback ends after its first step; whoever made the file removes it.
class StopFile final : public Callback {
 public:
  /// Throws ConfigError for a path that ends in no file name, or that names a folder.
  explicit StopFile(StopFileOptions options = {});
  [[nodiscard]] std::string name() const override { return "stop_file:" + file_.string(); }
  /// Throws ConfigError where a folder has the name.
  Action before_fit(FitContext& context) override;
  Action after_batch(FitContext& context) override;
  [[nodiscard]] CallbackFacts facts() const override;

 private:
  std::filesystem::path file_;
  bool stopped_ = false;  // one message is enough
};

}  // namespace tare
