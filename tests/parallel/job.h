// Runs rank_program as the ranks of a job.
#pragma once

#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/program.h"
#include "tare/parallel/group.h"

namespace tare::testing {

/// Holds variables of the environment, as NAME=value.
using Variables = std::vector<std::string>;

/// Is a job of several ranks on this machine.
class Job {
 public:
  /// Starts `size` ranks, without those in `missing`.
  Job(int64_t size, const std::string& what,
      const nlohmann::json& options = nlohmann::json::object(), const Variables& variables = {},
      const std::vector<int64_t>& missing = {}) {
    for (int64_t rank = 0; rank < size; ++rank) {
      if (std::find(missing.begin(), missing.end(), rank) != missing.end()) continue;
      Variables words{"RANK=" + std::to_string(rank),
                      "WORLD_SIZE=" + std::to_string(size),
                      "MASTER_ADDR=127.0.0.1",
                      "MASTER_PORT=" + std::to_string(store_.port()),
                      "TORCHELASTIC_USE_AGENT_STORE=True",
                      "OMP_NUM_THREADS=1"};
      words.insert(words.end(), variables.begin(), variables.end());
      words.push_back(std::filesystem::absolute(program_path("rank_program")).string());
      words.push_back(what);
      words.push_back(options.dump());
      ranks_.emplace_back("/usr/bin/env", words);
    }
  }
  [[nodiscard]] std::vector<ProgramResult> wait() {
    std::vector<ProgramResult> results;
    for (Program& rank : ranks_) results.push_back(rank.wait());
    return results;
  }

 private:
  parallel::StoreServer store_;
  std::deque<Program> ranks_;
};

/// Returns what each rank has printed; fails where one has ended with an error.
inline std::vector<nlohmann::json> results_of(
    int64_t size, const std::string& what, const nlohmann::json& options = nlohmann::json::object(),
    const Variables& variables = {}) {
  std::vector<nlohmann::json> all;
  for (const ProgramResult& one : Job(size, what, options, variables).wait()) {
    EXPECT_EQ(one.status, 0) << one.err;
    all.push_back(one.status == 0 ? nlohmann::json::parse(one.out) : nlohmann::json());
  }
  return all;
}

}  // namespace tare::testing
