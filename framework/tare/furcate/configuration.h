// Furcate's configurations as sweeps: one JSON object, whose lists are what varies.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tare/report/memory_monitor_options.h"
#include "tare/sweep/sweep_options.h"

namespace tare::furcate {

/// Whether a configuration is one of Furcate: it has data_name and data_dir.
[[nodiscard]] bool is_configuration(const config::Node& root);

using report::MemoryMonitorOptions;

/// Holds `meta.mem_trace`, for each run: MemoryMonitorOptions with Furcate's name for the interval.
struct FurcateMonitor : MemoryMonitorOptions {
  FurcateMonitor() { tag = "mem_trace"; }
};
void visit_fields(auto& visit, FurcateMonitor& o) { visit_memory_monitor(visit, o, "delay"); }

/// Holds `meta`: how the runs are done.
struct Meta {
  bool allow_cpu = false;    ///< without a GPU, run on the CPU in place of an error
  int64_t max_threads = -1;  ///< runs at a time; -1: one for each GPU, on the CPU one
  std::vector<search::Settings> exclude_configs{};  ///< combinations that are not run
  FurcateMonitor mem_trace{};                       ///< what each run prints of its memory
};
void visit_fields(config::Visitor& visit, Meta& o);

/// Returns the whole configuration of Furcate's README, in its order: log_dir, learning_rate,
/// verbose, cache, seed, prefetch, meta with their defaults, the file's own keys, then
/// train_prefix, valid_prefix and test_prefix. `meta` keeps the defaults that the file does not
/// change. Throws ConfigError without data_name, data_dir, batch_size or epochs, and for keys of
/// meta that there are not.
[[nodiscard]] config::Node whole_configuration(const config::Node& root);

/// Returns the sweep of a configuration of Furcate over a recipe, which its key `recipe` names:
/// each list is a parameter, `meta.exclude_configs` are excluded, `meta.max_threads` run at a time.
/// batch_size is the recipe's batch, epochs and learning_rate are those of its first phase,
/// optimizer_name is optimizer.kind, num_parallel_calls or else prefetch is workers; any other is a
/// key of the recipe, in place of furcate's default for it. Throws ConfigError for a list that
/// cannot vary or is empty, for two keys that set one value, and for what furcate has for its
/// programs and a recipe does not (cache, verbose, the prefixes), unless its value is the default.
[[nodiscard]] sweep::SweepOptions recipe_sweep(const config::Node& root);

/// Returns the sweep of a configuration of Furcate over a program of the user's, without a recipe:
/// its settings are the configuration's own keys, but for data_name and meta. What is compared is
/// val_loss. Throws ConfigError for a list in the place of log_dir, for an empty one, and for a key
/// with '='.
[[nodiscard]] sweep::SweepOptions program_sweep(const config::Node& root);

/// Returns the options in `meta.mem_trace`; not enabled for a sweep that is not one of Furcate.
[[nodiscard]] MemoryMonitorOptions monitor_of(const sweep::SweepOptions& sweep);

/// Reads and checks a configuration of Furcate as the sweep of a recipe, or a sweep's own file as
/// sweep::read_sweep() does, with `key=value` overrides. data_dir is data.folder where the recipe's
/// data set reads a folder. Throws ConfigError with file, line and column, also for a recipe that
/// is not there, for a key that neither furcate nor a recipe has, and where data_dir does not hold
/// the files of the recipe's data; IoError.
[[nodiscard]] sweep::SweepOptions read_sweep(const std::filesystem::path& file,
                                             const std::vector<std::string>& overrides);

/// Reads and checks a configuration of Furcate for a program, see program_sweep().
[[nodiscard]] sweep::SweepOptions read_program_sweep(
    const std::filesystem::path& file, const std::vector<std::string>& overrides = {});

/// Calls read_program_sweep() for a configuration of Furcate that names no recipe, else
/// read_sweep().
[[nodiscard]] sweep::SweepOptions read_any_sweep(const std::filesystem::path& file,
                                                 const std::vector<std::string>& overrides);

}  // namespace tare::furcate
