// Looks for a file after each batch.
#include "tare/callback/stop_file.h"

#include <system_error>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/callback/registry.h"

namespace tare {
namespace {

[[noreturn]] void refuse_folder(const std::filesystem::path& path) {
  throw ConfigError("stop_file", "file", "names a folder", "the path of a file",
                    printable(path.string()));
}

}  // namespace

StopFile::StopFile(StopFileOptions options) : file_(options.file.lexically_normal()) {
  if (!file_.has_filename() || file_ == "." || file_.filename() == "..")
    throw ConfigError("stop_file", "file", "names no file", "the path of a file",
                      printable(options.file.string()));
  if (file_.is_absolute() && std::filesystem::is_directory(file_)) refuse_folder(file_);
}

CallbackFacts StopFile::facts() const {
  if (file_.has_parent_path()) return {};  // not directly in the run's folder
  return {.files = {file_.string()}};
}

Action StopFile::before_fit(FitContext& context) {
  const auto path = context.learner.folder() / file_;
  if (std::filesystem::is_directory(path)) refuse_folder(path);
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
