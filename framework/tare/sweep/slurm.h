// Runs in jobs of Slurm's: an array of agents, each of which does one run after the other.
#pragma once

#include <memory>

#include "tare/sweep/executor.h"
#include "tare/sweep/sweep_options.h"

namespace tare::sweep {

/// Submits agents as long as runs could be on that have none, `resources.jobs` at most, and lets
/// them go when there are too many, and all in the end. It asks squeue every few seconds and reads
/// the agents' files twice a second (more seldom where there are many). A run belongs to its agent
/// until that has done it, or Slurm no longer knows the job: a job that was requeued continues with
/// its run, one that was lost gives it back. When the process of the coordinator is killed the
/// agents go on, and the next one follows them.
class SlurmExecutor : public Executor {
 public:
  /// `sweep` must outlive it. `agent`: the words of the program that calls run_slurm_agent(), the
  /// folder is added. Nothing is touched before left_behind(), so that of two coordinators the one
  /// that does not get the folder disturbs no agent. Throws StateError without Slurm's programs.
  SlurmExecutor(const SweepOptions& sweep, std::vector<std::string> agent);
  ~SlurmExecutor() override;

  std::map<std::string, std::unique_ptr<Process>> left_behind(
      const std::vector<ChildMark>& marks) override;
  /// Throws StateError if sbatch refuses while there is no agent, or agents end before they begin.
  bool has_room(int64_t runs) override;
  std::unique_ptr<Process> start(const ChildStart& how) override;

 private:
  class Cluster;
  class Run;
  const SweepOptions& sweep_;
  std::vector<std::string> agent_;
  std::shared_ptr<Cluster> cluster_;
};

}  // namespace tare::sweep
