#include "tare/sweep/executor_options.h"

#include <algorithm>

#include "tare/base/error.h"

namespace tare::sweep {
namespace {

/// Of sbatch, what the jobs of a sweep depend on.
const std::vector<std::string> kOurs{
    "--array", "-a",      "--job-name", "-J",       "--output",  "-o",           "--error",
    "-e",      "--chdir", "-D",         "--signal", "--requeue", "--no-requeue", "--open-mode",
    "--wait",  "-W",      "--clusters", "-M",       "--wrap",    "--parsable"};

/// Also abbreviated, "--job-n=x", or with the value behind the letter, "-Jx".
bool is_ours(const std::string& option) {
  const bool is_long = option.starts_with("--");
  const std::string name = is_long ? option.substr(0, option.find('=')) : option.substr(0, 2);
  return std::ranges::any_of(kOurs, [&](const std::string& ours) {
    return is_long ? ours.starts_with(name) : ours == name;
  });
}

void refuse(const std::string& key, const std::string& problem, const std::string& allowed,
            const std::string& got) {
  throw ConfigError("sweep", "executor." + key, problem, allowed, printable(got));
}

}  // namespace

void visit_fields(config::Visitor& visit, ExecutorOptions& o) {
  visit("type", o.type, config::one_of({"local", "slurm"}));
  visit("options", o.options)("setup", o.setup);
  visit("save_before_s", o.save_before_s, config::between(1, 65535));  // as sbatch takes it
}

void check(const ExecutorOptions& executor) {
  for (const auto& option : executor.options) {
    if (!option.starts_with('-') || option.find('\n') != std::string::npos)
      refuse("options", "has what is no option of sbatch", "such as --gres=gpu:1", option);
    if (is_ours(option))
      refuse("options", "has what the sweep sets itself", "none of " + config::joined(kOurs),
             option);
  }
  if (!executor.is_slurm() && (!executor.options.empty() || !executor.setup.empty()))
    refuse("type", "takes no options and no setup", "slurm", executor.type);
}

}  // namespace tare::sweep
