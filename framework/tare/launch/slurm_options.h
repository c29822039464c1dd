// The options for Slurm's jobs in a sweep's file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tare/config/field.h"

namespace tare::launch {

/// Configures the executor `slurm`.
struct SlurmOptions {
  std::vector<std::string> options{};  ///< of each job, as sbatch takes them: "--gres=gpu:1"
  std::vector<std::string> setup{};    ///< lines of the shell in each job, before its runs
  int64_t save_before_s = 90;          ///< seconds before the end of a job's time its run saves
};
void visit_fields(auto& visit, SlurmOptions& o) {
  visit("options", o.options)("setup", o.setup);
  visit("save_before_s", o.save_before_s, config::between(1, 65535));
}

}  // namespace tare::launch
