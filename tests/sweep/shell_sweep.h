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
  [[nodiscard]] sweep::SweepHost host_of(const sweep::SweepOptions& sweep,
                                         const std::string& script) {
    sweep::SweepHost host;
    host.command = [&sweep, script](const std::vector<std::string>& settings,
                                    const launch::DeviceSlot&, int64_t budget) {
      return shell_run(sweep, settings, budget, script);
    };
    host.out = &out_;
    return host;
  }
  sweep::SweepReport run(const std::string& text, const std::string& script,
                         const std::function<bool()>& interrupted = {}) {
    const auto sweep = read(text);
    auto host = host_of(sweep, script);
    host.interrupted = interrupted;
    return sweep::run_sweep(sweep, host);
  }
  [[nodiscard]] std::filesystem::path store() const { return files_.log_dir() / "s.sqlite"; }
  [[nodiscard]] std::string file(const std::string& name) const {
    return io::read_text(files_.log_dir() / name);
  }

  SweepFiles files_;
  std::ostringstream out_;
};

}  // namespace tare::testing
