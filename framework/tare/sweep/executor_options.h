// Where the runs of a sweep are processes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tare/config/field.h"

namespace tare::sweep {

/// Jobs of one sweep at a time, whatever its `jobs`: an array as large as Slurm takes by default.
inline constexpr int64_t kMaxSlurmAgents = 1000;

struct ExecutorOptions {
  std::string type = "local";          ///< local: this machine; slurm: jobs of a cluster
  std::vector<std::string> options{};  ///< of sbatch, for each job: "--gres=gpu:1"
  std::vector<std::string> setup{};    ///< lines of the shell in each job, before its runs
  int64_t save_before_s = 90;          ///< seconds before the end of a job's time its run saves

  [[nodiscard]] bool is_slurm() const { return type == "slurm"; }
  bool operator==(const ExecutorOptions&) const = default;
};
void visit_fields(config::Visitor& visit, ExecutorOptions& o);

/// Throws ConfigError for options of sbatch that a sweep itself sets.
void check(const ExecutorOptions& options);

}  // namespace tare::sweep
