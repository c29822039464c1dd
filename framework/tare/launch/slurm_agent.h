// The agent of a sweep in a Slurm job: does one run after the other.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace tare::launch {

/// Identifies a task of an array of jobs, which stays the same when Slurm requeues it.
struct SlurmTask {
  std::string id{};      ///< "12_0": SLURM_ARRAY_JOB_ID and SLURM_ARRAY_TASK_ID
  int64_t restarts = 0;  ///< SLURM_RESTART_COUNT
};

/// Reads the task from this process's environment. Throws StateError outside of a job of an array.
[[nodiscard]] SlurmTask slurm_task();

/// Does the jobs that the coordinator writes in `folder`, log_dir/slurm, until it retires the
/// agent, has not been seen for two minutes while no run was running, or the job's place is taken
/// away. Then the run saves and ends; when it is for want of time, SIGUSR1, the job is requeued,
/// and the run continues in it. Blocks SIGTERM, SIGINT and SIGUSR1 in this process. Returns the
/// exit code of the job. Throws IoError.
int run_slurm_agent(const std::filesystem::path& folder, const SlurmTask& task);

}  // namespace tare::launch
