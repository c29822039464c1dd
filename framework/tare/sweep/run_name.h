// The names of a sweep's runs: of their folders and of what they print. Internal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tare/search/trial.h"
#include "tare/sweep/sweep_options.h"

namespace tare::sweep {

/// Returns "foo" of "foo/" and of "data/foo".
[[nodiscard]] std::string last_part(std::string path);

/// Returns "NAME7_lr0-01_bs32", or with SweepOrigin::run_word "NAME7_foo_lr0-01": for each setting
/// the first letters of the key's words and the value with '-' for '.' and for what a folder's name
/// may not have; of a number that was drawn four digits. At most 128 bytes.
[[nodiscard]] std::string run_name(const SweepOptions& sweep, int64_t id, const search::Cell& cell);

/// Returns what the names of the runs are made of, as a sentence without a full stop: "names of
/// runs: NAME and a number, then lr (optimizer.lr) with its value"; empty: nothing varies.
[[nodiscard]] std::string name_legend(const SweepOptions& sweep);

/// Returns the number in the name of one of the sweep's runs, "s7_lr0-1"; unset for another name.
[[nodiscard]] std::optional<int64_t> number_in(const std::string& run_name,
                                               const std::string& sweep_name);

/// Returns the name, without its ending, of the files with a run's output: the name of its folder,
/// or "example0" with SweepOrigin::numbered_logs.
[[nodiscard]] std::string log_stem(const SweepOptions& sweep, const std::string& run_name);

/// Returns the runs' folders in log_dir, by the sweep's name and a number, in order of number.
[[nodiscard]] std::vector<std::filesystem::path> run_folders(const std::filesystem::path& log_dir,
                                                             const std::string& sweep_name);

}  // namespace tare::sweep
