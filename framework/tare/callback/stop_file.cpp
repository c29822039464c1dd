// Looks for a file after each batch.
#include "tare/callback/stop_file.h"

#include <system_error>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/callback/registry.h"

namespace tare {

Action StopFile::before_fit(FitContext&) {
  stopped_ = false;
  return Action::proceed;
}

Action StopFile::after_batch(FitContext& context) {
  const auto path = context.learner.folder() / file_;
  std::error_code ignored;  // what cannot be looked at is not there
  if (!std::filesystem::exists(path, ignored)) return Action::proceed;
  if (!stopped_) log::info("stopped: '" + printable(path.string()) + "' is there");
  stopped_ = true;
  return Action::stop_fit;
}

namespace callbacks {
void add_stop_file(Registry& all) {
  all.add<StopFileOptions>("stop_file", "ends a fit when a file appears",
                           [](const StopFileOptions& o) { return std::make_shared<StopFile>(o); });
}
}  // namespace callbacks

}  // namespace tare
