#include "tare/sweep/executor_options.h"

#include <algorithm>

#include "tare/base/error.h"

namespace tare::sweep {
namespace {

/// A sweep's jobs are one array, whose output goes beside its store.
const std::vector<std::string> kOurs{"--array",      "-a",       "--job-name", "-J",
                                     "--output",     "-o",       "--error",    "-e",
                                     "--open-mode",  "--signal", "--parsable", "--requeue",
                                     "--no-requeue", "--wrap",   "--wait",     "-W"};

void refuse(const std::string& key, const std::string& problem, const std::string& allowed,
            const std::string& got) {
  throw ConfigError("sweep", "executor." + key, problem, allowed, printable(got));
}

}  // namespace

void visit_fields(config::Visitor& visit, ExecutorOptions& o) {
  visit("type", o.type, config::one_of({"local", "slurm"}));
  visit("options", o.options)("setup", o.setup);
  visit("save_before", o.save_before, config::between(1, 65535));  // as sbatch takes it
}

void check(const ExecutorOptions& executor) {
  for (const auto& option : executor.options) {
    if (!option.starts_with('-') || option.find('\n') != std::string::npos)
      refuse("options", "has what is no option of sbatch", "such as --gres=gpu:1", option);
    if (std::ranges::find(kOurs, option.substr(0, option.find('='))) != kOurs.end())
      refuse("options", "has what the sweep sets itself", "none of " + config::joined(kOurs),
             option);
  }
  if (!executor.is_slurm() && (!executor.options.empty() || !executor.setup.empty()))
    refuse("type", "takes no options and no setup", "slurm", executor.type);
}

}  // namespace tare::sweep
