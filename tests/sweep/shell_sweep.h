// Sweeps whose runs are shell scripts.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "sweep/support.h"
#include "tare/sweep/coordinator.h"

namespace tare::testing {

class ShellSweepTest : public ::testing::Test {
 protected:
  [[nodiscard]] sweep::SweepOptions read(const std::string& text) const {
    return files_.read("metric: {name: acc, goal: maximize}\n" + text);
  }
  /// Each run executes `script`. `sweep` must outlive it.
  [[nodiscard]] sweep::Surroundings around(const sweep::SweepOptions& sweep,
                                           const std::string& script) {
    sweep::Surroundings around;
    around.command = [&sweep, script](const std::vector<std::string>& settings,
                                      const sweep::DeviceRoom&, int64_t budget) {
      return shell_run(sweep, settings, budget, script);
    };
    around.out = &out_;
    return around;
  }
  sweep::SweepReport run(const std::string& text, const std::string& script,
                         const std::function<bool()>& interrupted = {}) {
    const auto sweep = read(text);
    auto surroundings = around(sweep, script);
    surroundings.interrupted = interrupted;
    return sweep::run_sweep(sweep, surroundings);
  }
  [[nodiscard]] std::filesystem::path store() const { return files_.log_dir() / "s.sqlite"; }
  [[nodiscard]] std::string file(const std::string& name) const {
    return io::read_text(files_.log_dir() / name);
  }

  SweepFiles files_;
  std::ostringstream out_;
};

}  // namespace tare::testing
