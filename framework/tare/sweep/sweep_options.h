// A sweep: which runs of a recipe, where their results go and what they may take.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tare/base/error.h"
#include "tare/config/field.h"
#include "tare/config/node.h"
#include "tare/launch/executors.h"
#include "tare/search/pruners.h"
#include "tare/search/search_options.h"

namespace tare::sweep {

/// Holds a number of bytes, or `auto`.
struct ByteLimit {
  std::optional<int64_t> bytes{};  ///< unset: auto
};
void from_node(const config::Node& node, ByteLimit& value);
[[nodiscard]] config::Node to_node(const ByteLimit& value);

/// Limits the resources of the runs of a sweep.
struct Resources {
  /// Runs at a time; 0: one for each core, or for as many cores as a run has ranks, on GPUs
  /// max_per_gpu for each.
  int64_t jobs = 0;
  int64_t ranks = 1;        ///< processes that train each run together; each has a card of its own
  int64_t max_per_gpu = 4;  ///< runs at a time on one card
  ByteLimit total{};   ///< of the host for tensors of all runs; auto: what is free at the start
  ByteLimit memory{};  ///< for each rank of each run; auto: by its plan
};
void visit_fields(config::Visitor& visit, Resources& o);

/// Sets how a sweep reacts to failed runs.
struct OnFailure {
  int64_t max_retries = 1;  ///< of a run that was lost or out of memory
  int64_t max_failed = 0;   ///< failed runs after which no other starts; 0: any number
};
void visit_fields(config::Visitor& visit, OnFailure& o);

/// Names a setting for a key of the recipe.
struct Alias {
  std::string name{}, key{};  ///< the setting; the key of the recipe, dotted
  bool lower_case = false;    ///< values are written in lower case in the recipe
};

/// Describes the source of a sweep, where the source is not a sweep's own file but a configuration
/// of another form. A value.
struct SweepOrigin {
  config::Node configuration{};  ///< the whole of it; null: the sweep has a file of its own
  /// Whether the runs execute a program that reads the configuration with their values, not a
  /// recipe.
  bool is_program = false;
  /// Keys of a program's configuration that change how a run works but not its results, unless they
  /// vary.
  std::vector<std::string> without{};
  std::vector<Alias> aliases{};  ///< names for keys of the recipe
  std::string run_word{};        ///< after the number in the name of each run
  std::string word_parameter{};  ///< the parameter whose value's last part is the word in its place
  bool numbered_logs = false;    ///< what a run prints is in NAME0.log, without its settings
  bool needs_gpu = false;        ///< runs may not be on the CPU
  /// Returns the key that the configuration has for a field of SweepOptions; null: the field
  /// itself.
  std::string (*key_of)(const std::string& field) = nullptr;
};

/// Configures a sweep: what it searches, and how runs are done; docs/sweeps.md explains the keys.
struct SweepOptions : search::SearchOptions {
  std::string name{};                 ///< of the study and of the runs' folders; a path component
  std::filesystem::path recipe{};     ///< beside the sweep's file, if not absolute
  std::filesystem::path log_dir{};    ///< holds the store and the runs' folders; empty: runs/NAME
  int64_t trials = 0;                 ///< runs at most; 0: all combinations
  uint64_t seed = 42;                 ///< of what is drawn
  search::PrunerChoice pruner{};      ///< `type` and options; which trials end early
  Resources resources{};              ///< what the runs may take
  OnFailure on_failure{};             ///< what happens when runs fail
  launch::ExecutorChoice executor{};  ///< `type` and options; where the runs are started

  config::Node root{};  ///< what was read, with its places; null for a sweep made in code; no key

  SweepOrigin origin{};  ///< no key
};
void visit_fields(config::Visitor& visit, SweepOptions& o);

/// Returns a key that must not change while a sweep runs but has changed; nullptr: there is none.
[[nodiscard]] const char* fixed_key(const SweepOptions& before, const SweepOptions& after);

/// Returns `error`, which concerns the options of a sweep or a value that its recipe refuses, with
/// the key of the field in the sweep's own file (see SweepOrigin::key_of), and with its place in
/// the file, if the error has none.
[[nodiscard]] ConfigError at_its_place(const SweepOptions& sweep, const ConfigError& error);

/// Throws ConfigError, with its place in the file, for options that contradict each other.
void check(const SweepOptions& sweep);

/// Throws ConfigError where `exclude` leaves no combination of a grid.
void check_not_all_excluded(const SweepOptions& sweep);

/// Makes recipe and log_dir those of a sweep that was read from `file`.
void resolve_paths(SweepOptions& sweep, const std::filesystem::path& file);

/// Reads and checks a sweep's file with `key=value` overrides. The recipe itself is not read.
/// Throws ConfigError with file, line and column; IoError.
[[nodiscard]] SweepOptions read_sweep(const std::filesystem::path& file,
                                      const std::vector<std::string>& overrides);

}  // namespace tare::sweep
