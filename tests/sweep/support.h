// A sweep's file in a folder of its own.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "search/support.h"
#include "support/temp_dir.h"
#include "tare/base/io.h"
#include "tare/search/grid.h"
#include "tare/sweep/sweep_options.h"

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

/// A run that is a shell script: $folder, $budget and the settings `a` and `c` are variables, and
/// `finish VALUE PEAK` writes what a run does, with the metric `acc`; `train VALUE...` does an
/// epoch for each value, continues behind those it has done, and ends within one when it is asked
/// to.
inline std::vector<std::string> shell_run(const sweep::SweepOptions& sweep,
                                          const std::vector<std::string>& settings, int64_t budget,
                                          const std::string& script) {
  constexpr const char* kFinish = R"sh(
finish() {
  mkdir -p "$folder"
  echo "name: x" > "$folder/recipe.yaml"
  printf 'epoch,train_loss,valid_loss,acc,seconds\n0,1,2,%s,0.1\n' "$1" > "$folder/all.csv"
  printf '{"name":"x","data":"","device":"cpu","reason":"finished","residual_bytes":0,"process_bytes":0,
    "seconds":0.5,"phases":[{"name":"all","epochs":[],"seconds":1,"samples_per_s":1,"consumed_bytes":0,"peak_bytes":%s,
    "reclaimed_bytes":0,"residual_bytes":0,"micro_batch":0,"overflows":0,"leaks":[]}]}' "$2" > "$folder/report.json"
  exit 0
}
train() {
  mkdir -p "$folder"
  trap 'exit 143' TERM
  echo "phases: [{name: all}]" > "$folder/recipe.yaml"
  test -e "$folder/all.csv" || echo 'epoch,train_loss,valid_loss,acc,seconds' > "$folder/all.csv"
  epoch=0
  done=$(($(wc -l < "$folder/all.csv") - 1))
  for value in "$@"; do
    epoch=$((epoch + 1))
    if test $epoch -gt $done; then
      test $epoch = $# && trap '' TERM  # it is as good as done
      echo "$epoch,1,2,$value,0.1" >> "$folder/all.csv"
      sleep "${pause:-0.2}"
    fi
  done
  printf '{"name":"x","data":"","device":"cpu","reason":"finished","residual_bytes":0,"process_bytes":0,
    "seconds":0.5,"phases":[]}' > "$folder/report.json"
  exit 0
}
)sh";
  std::map<std::string, std::string> values{{"a", ""}, {"c", ""}};
  for (const auto& setting : settings) {
    const size_t equals = setting.find('=');
    values[setting.substr(0, equals)] = setting.substr(equals + 1);
  }
  return {"/bin/sh", "-c",
          "budget=" + std::to_string(budget) + "\nfolder='" +
              (sweep.log_dir / values.at("name")).string() + "'\na=" + values["a"] +
              "\nc=" + values["c"] + kFinish + script};
}

}  // namespace tare::testing
