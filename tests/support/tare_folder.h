// A folder of its own in which a test runs the program `tare`.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/environment.h"
#include "support/program.h"
#include "support/temp_dir.h"

namespace tare::testing {

/// Holds the folder; what the program keeps for later runs is kept in it too.
class TareFolder {
 protected:
  [[nodiscard]] ProgramResult tare(const std::vector<std::string>& words) const {
    return run_program("tare", words, folder_.path());
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }

  TempDir folder_;

 private:
  ScopedVariable home_{"TARE_HOME", (folder_ / "home").string()};
};

}  // namespace tare::testing
