// Slurm's programs, called for the agents of one sweep. Internal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tare/launch/executor_type.h"
#include "tare/launch/process.h"
#include "tare/launch/slurm_options.h"

namespace tare::launch {

/// Throws StateError if sbatch cannot be executed.
void require_slurm();

/// Returns the command with which a job that has `ranks` tasks starts `command` in each of them.
/// None of them is ended because another one has, so that each can save or say what was wrong.
[[nodiscard]] std::vector<std::string> in_each_task(std::vector<std::string> command,
                                                    int64_t ranks);

class SlurmTools {
 public:
  /// Makes `folder`, the absolute path of log_dir/slurm, with the script of the jobs, which
  /// executes the words `agent` and the folder. Each job has `ranks` tasks. Throws IoError.
  SlurmTools(std::filesystem::path folder, const SlurmOptions& options,
             const std::vector<std::string>& agent, int64_t ranks);

  /// Submits an array of so many agents and returns its tasks, "12_0". Throws StateError with what
  /// sbatch says when it refuses.
  std::vector<std::string> submit(int64_t count);
  /// Returns all tasks that have ever begun, of this coordinator and earlier ones.
  [[nodiscard]] std::vector<std::string> begun() const;

  using Tasks = std::map<std::string, std::string>;  ///< squeue's states by task
  /// Starts to ask which tasks of this sweep Slurm knows.
  void ask();
  [[nodiscard]] bool asks() const { return squeue_.has_value(); }
  /// Returns squeue's answer; unset: there is none yet, or squeue has failed, which is a warning
  /// once.
  [[nodiscard]] std::optional<Tasks> answer();
  /// Throws StateError if squeue fails.
  [[nodiscard]] Tasks wait_for_answer();

  void cancel(const std::vector<std::string>& tasks);
  /// Returns the last lines that a task printed.
  [[nodiscard]] std::string log_of(const std::string& task) const;

 private:
  struct ToolOutput {
    int exit_code = 0;
    std::string out{}, err{};
  };
  [[nodiscard]] Child begin(const std::vector<std::string>& command) const;
  [[nodiscard]] ToolOutput finish(Child& tool, const std::string& name) const;
  [[nodiscard]] ToolOutput call(const std::vector<std::string>& command) const;
  [[nodiscard]] static Tasks parsed(const std::string& text);

  std::filesystem::path folder_;
  SlurmOptions options_;
  int64_t ranks_;
  std::string name_;  // of the jobs
  std::optional<Child> squeue_;
  bool has_warned_ = false;
};

}  // namespace tare::launch
