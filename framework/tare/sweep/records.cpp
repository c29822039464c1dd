#include "tare/sweep/records.h"

#include <utility>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/config/node.h"
#include "tare/sweep/run_record.h"

namespace tare::sweep {
namespace {

using config::Node;

/// Furcate's own configuration with the values of the run, or the recipe as the run has read it.
Node config_of(const SweepOptions& sweep, const Trial& trial, const std::filesystem::path& folder) {
  if (sweep.furcate.kind == config::Kind::null) return config::parse_file(folder / "recipe.yaml");
  Node config = sweep.furcate;
  for (const auto& [key, value] : trial.cell.values) config.set(key, value);
  config.set("log_dir", Node::string(folder.string()));
  return config;
}

}  // namespace

bool Records::write_one() {
  if (waiting_.empty()) return false;
  const Ended run = std::move(waiting_.front());
  waiting_.pop_front();
  try {
    write(run);
  } catch (const Error& error) {
    log::warning(std::string(error.what()) + "; " + run.trial.run_name + " has no run_data.json");
  }
  return true;
}

void Records::write(const Ended& run) const {
  const auto folder = sweep_.log_dir / run.trial.run_name;
  write_run_files(folder, record_of(report::read_run(folder, folder),
                                    config_of(sweep_, run.trial, folder), run.start, run.end));
}

}  // namespace tare::sweep
