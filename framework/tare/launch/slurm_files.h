// The messages between a coordinator and the agents in Slurm's jobs, as files: each is replaced
// whole by its one writer, so they work on any file system that a cluster shares. Internal.
//
//   log_dir/slurm/agent.sh          the script of the jobs
//   log_dir/slurm/name              of the jobs, of this sweep alone
//   log_dir/slurm/heartbeat         changes while a coordinator is there
//   log_dir/slurm/12_0.log          what the job printed
//   log_dir/slurm/12_0/order.json   by the coordinator
//   log_dir/slurm/12_0/state.json   by the agent
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "tare/launch/process.h"

namespace tare::launch {

/// Describes the work of an agent: one run. Jobs of Slurm itself are its tasks.
struct Job {
  int64_t number = 0;   ///< 1, 2, ... of the sweep; 0: nothing yet
  ChildStart how{};     ///< of the run; the environment is the job's
  int64_t ranks = 1;    ///< of the run, each of which is a task of the job
  bool stop = false;    ///< the run is to save and end
  bool retire = false;  ///< and the agent too, when no run is running
};

/// Reports the state of an agent.
struct AgentState {
  int64_t restarts = 0;  ///< of its job, by Slurm
  std::string host{};
  int64_t done = 0;      ///< the latest job that has ended
  ChildEnd end{};        ///< of that
  int64_t saved = 0;     ///< the job whose run has saved when the job's place was taken away
  bool retired = false;  ///< it has ended
};

/// Writes a file of the agent's folder. Throws IoError.
void write(const std::filesystem::path& agent, const Job& job);
void write(const std::filesystem::path& agent, const AgentState& state);
/// Reads a file; returns the defaults if there is no file or it cannot be read.
[[nodiscard]] Job read_job(const std::filesystem::path& agent);
[[nodiscard]] AgentState read_state(const std::filesystem::path& agent);
/// Whether the agent has begun.
[[nodiscard]] bool has_state(const std::filesystem::path& agent);
inline constexpr const char* kHeartbeatFile = "heartbeat";  ///< in log_dir/slurm
/// Reads the heartbeat in log_dir/slurm; empty where none is.
[[nodiscard]] std::string read_heartbeat(const std::filesystem::path& folder);

}  // namespace tare::launch
