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
#include "tare/launch/executor_type.h"
#include "tare/search/pruner_options.h"
#include "tare/search/space.h"

namespace tare::sweep {

/// A number of bytes, or `auto`.
struct ByteLimit {
  std::optional<int64_t> bytes{};  ///< unset: auto
};
void from_node(const config::Node& node, ByteLimit& value);
[[nodiscard]] config::Node to_node(const ByteLimit& value);

struct Resources {
  int64_t jobs = 0;         ///< runs at a time; 0: one for each core, on GPUs max_per_gpu for each
  int64_t max_per_gpu = 4;  ///< runs at a time on one card
  ByteLimit total{};   ///< of the host for tensors of all runs; auto: what is free at the start
  ByteLimit memory{};  ///< for each run; auto: by its plan
};
void visit_fields(config::Visitor& visit, Resources& o);

struct OnFailure {
  int64_t max_retries = 1;  ///< of a run that was lost or out of memory
  int64_t max_failed = 0;   ///< failed runs after which no other starts; 0: any number
};
void visit_fields(config::Visitor& visit, OnFailure& o);

/// A whole sweep: what it searches, and how its runs are done; docs/sweeps.md explains every key.
struct SweepOptions : search::SearchOptions {
  std::string name{};               ///< of the study and of the runs' folders; a path component
  std::filesystem::path recipe{};   ///< beside the sweep's file, if not absolute
  std::filesystem::path log_dir{};  ///< holds the store and the runs' folders; empty: runs/NAME
  int64_t trials = 0;               ///< runs at most; 0: all combinations
  uint64_t seed = 42;               ///< of what is drawn
  search::PrunerOptions pruner{};
  Resources resources{};
  OnFailure on_failure{};
  launch::ExecutorOptions executor{};

  config::Node root{};  ///< what was read, with its places; null for a sweep made in code; no key

  // Of furcate's configurations only, see furcate.h; no keys.
  config::Node furcate{};  ///< the whole configuration; null: it is not one of furcate's
  /// Keys of the recipe by the names of settings and parameters.
  std::vector<std::pair<std::string, std::string>> aliases{};
  std::string run_word{};  ///< after the number in the name of each run
  bool needs_gpu = false;  ///< may not run on the CPU
};
void visit_fields(config::Visitor& visit, SweepOptions& o);

/// A key that must be the same while a sweep runs, and is not; nullptr: there is none.
[[nodiscard]] const char* fixed_key(const SweepOptions& before, const SweepOptions& after);

/// `error` about the options of a sweep, or about a value that its recipe refuses, with the key
/// that the sweep's own file has for its field ("parameters.a" is "a" in a configuration of
/// furcate's), and where it is in the file, if the error does not say that itself.
[[nodiscard]] ConfigError at_its_place(const SweepOptions& sweep, const ConfigError& error);

/// Reads and checks a sweep's file, or a configuration of furcate's, with `key=value` overrides.
/// The recipe itself is not read. Throws ConfigError with file, line and column; IoError.
[[nodiscard]] SweepOptions read_sweep(const std::filesystem::path& file,
                                      const std::vector<std::string>& overrides);

/// The same of a configuration of furcate's for a program, see furcate_program_sweep().
[[nodiscard]] SweepOptions read_program_sweep(const std::filesystem::path& file,
                                              const std::vector<std::string>& overrides = {});

/// read_program_sweep() for a configuration of furcate's that names no recipe, else read_sweep().
[[nodiscard]] SweepOptions read_any_sweep(const std::filesystem::path& file,
                                          const std::vector<std::string>& overrides);

}  // namespace tare::sweep
