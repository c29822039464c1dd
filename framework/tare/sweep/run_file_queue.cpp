// Writes the files of runs that have ended.
#include "tare/sweep/run_file_queue.h"

#include <utility>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/config/node.h"
#include "tare/sweep/run_record.h"

namespace tare::sweep {
namespace {

/// Whether a run that has left something lacks what write_run_files() writes.
bool lacks_files(const std::filesystem::path& folder) {
  std::error_code error;
  if (!std::filesystem::exists(folder / "recipe.yaml", error)) return false;
  bool whole = false;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const auto& file = entry->path();
    const auto kind = file.extension();
    if (kind != ".json" && kind != ".svg" && kind != ".png") continue;
    if (std::filesystem::file_size(file, error) == 0) return true;
    whole = whole || file.filename() == "run_data.json";  // the last to be written
  }
  return !whole;
}

}  // namespace

bool RunFileQueue::write_one() {
  if (waiting_.empty()) return false;
  const auto [trial, only_missing] = std::move(waiting_.front());
  waiting_.pop_front();
  try {
    if (!only_missing || lacks_files(sweep_.log_dir / trial.run_name)) write(trial);
  } catch (const Error& error) {
    log::warning(std::string(error.what()) + "; " + trial.run_name + " has no run_data.json");
  }
  return true;
}

void RunFileQueue::write(const Trial& trial) const {
  const auto folder = sweep_.log_dir / trial.run_name;
  const auto run = report::read_run(folder, folder);
  const bool on_host = run.figures && run.figures->device == "cpu";
  const auto gpu_id = on_host ? std::optional<int64_t>(-1) : trial.gpu_id;
  const config::Node config = recorder_ ? recorder_->configuration(sweep_, trial, gpu_id)
                                        : config::parse_file(folder / "recipe.yaml");
  write_run_files(folder, record_of(run, config, trial.started, trial.ended));
}

}  // namespace tare::sweep
