// Starts runs in Slurm jobs: an array of agents, each of which does one run after the other.
#pragma once

#include <memory>

#include "tare/launch/executor_type.h"
#include "tare/launch/slurm_options.h"

namespace tare::launch {

/// Bounds the jobs of one sweep at a time, whatever the sweep asks for: the size of the largest
/// array that Slurm accepts by default.
inline constexpr int64_t kMaxSlurmAgents = 1000;

/// Submits agents as long as there are more runs than agents, `runs` of has_capacity() at most,
/// retires agents when there are too many, and all in the end. It asks squeue every few seconds and
/// reads the agents' files twice a second (more seldom where there are many). A run belongs to its
/// agent until that has done it, or Slurm no longer knows the job: a job that was requeued
/// continues with its run, one that was lost gives it back. When the process of the coordinator is
/// killed the agents continue, and the next one follows them.
class SlurmExecutor : public Executor {
 public:
  /// Takes the command of the program that calls run_slurm_agent() as `context.agent`. Nothing is
  /// touched before recover(), so that of two coordinators the one that does not get the folder
  /// disturbs no agent.
  SlurmExecutor(SlurmOptions options, ExecutorContext context);
  ~SlurmExecutor() override;

  /// Throws StateError without Slurm's programs.
  void require_available() const override;
  [[nodiscard]] std::vector<DeviceSlot> slots(int64_t jobs) const override;
  [[nodiscard]] bool has_own_memory_limits() const override { return true; }
  /// Returns true: a job has a task for each rank.
  [[nodiscard]] bool starts_ranks() const override { return true; }
  [[nodiscard]] std::chrono::milliseconds poll_interval() const override;
  std::map<std::string, std::unique_ptr<Process>> recover(
      const std::vector<ProcessId>& ids) override;
  /// Throws StateError if sbatch refuses while there is no agent, or agents end before they begin.
  bool has_capacity(int64_t runs) override;
  std::unique_ptr<Process> start(const ChildStart& how) override;

 private:
  class Cluster;
  class Run;
  SlurmOptions options_;
  ExecutorContext context_;
  std::shared_ptr<Cluster> cluster_;
};

}  // namespace tare::launch
