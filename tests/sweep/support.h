// A sweep's file in a folder of its own.
#pragma once

#include <string>
#include <vector>

#include "support/temp_dir.h"
#include "tare/base/io.h"
#include "tare/sweep/grid.h"

namespace tare::testing {

/// recipe.yaml has `a: 1` and a mapping `b`; the sweep's text gets name, recipe and log_dir.
class SweepFiles {
 public:
  SweepFiles() { io::write_atomically(folder_ / "recipe.yaml", "name: r\na: 1\nb: {c: 2}\n"); }

  [[nodiscard]] sweep::SweepOptions read(const std::string& text,
                                         const std::vector<std::string>& overrides = {}) const {
    io::write_atomically(folder_ / "sweep.yaml", "name: s\nrecipe: recipe.yaml\nlog_dir: " +
                                                     log_dir().string() + '\n' + text);
    return sweep::read_sweep(folder_ / "sweep.yaml", overrides);
  }
  [[nodiscard]] std::filesystem::path log_dir() const { return folder_ / "logs"; }

 private:
  TempDir folder_;
};

/// "a=1 b=x" for each cell.
inline std::vector<std::string> texts(const std::vector<sweep::Cell>& cells) {
  std::vector<std::string> all;
  for (const auto& cell : cells) {
    std::string text;
    for (const auto& [key, value] : cell.values)
      text += (text.empty() ? "" : " ") + key + '=' + sweep::python_text(value);
    all.push_back(text);
  }
  return all;
}

}  // namespace tare::testing
