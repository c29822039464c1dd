// The configuration of one run of a tare::Fork program, as typed values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "tare/config/field.h"
#include "tare/furcate/configuration.h"

namespace tare {

/// Holds Furcate's own keys. A program's other keys are read by Fork::get().
struct ForkConfig {
  std::string data_name{};           ///< in front of the runs' folders
  std::filesystem::path data_dir{};  ///< where Fork::get_filepaths() looks
  std::filesystem::path log_dir{};   ///< in a run: its own folder, of this configuration's runs
  int64_t batch_size = 0;            ///< samples per optimizer step, >= 1
  int64_t epochs = 0;                ///< >= 1
  double learning_rate = 0.001;      ///< > 0
  int64_t verbose = 2;  ///< 0: silent; 1: the summary and the memory's report; 2: epochs as well
  bool cache = false;  ///< keeps what get_datasets() gives in memory, see cache() of data/dataset.h
  int64_t seed = 42;   ///< of LibTorch's generators, and of the Learner
  int64_t prefetch =
      1;  ///< loader threads; -1, or "auto" in the file: one for each core of the run
  std::optional<int64_t> shuffle_buffer_size{};  ///< 0 or 1: the training split is not shuffled
  int64_t gpu_id = -1;                           ///< -1: on the CPU
  std::string train_prefix{}, valid_prefix{}, test_prefix{};  ///< of file names in data_dir
  furcate::Meta meta{};                                       ///< how the runs are done
};
void visit_fields(config::Visitor& visit, ForkConfig& o);

/// Reads what furcate::whole_configuration() returns, with one value for each key. Throws
/// ConfigError for a value of another kind or out of range.
[[nodiscard]] ForkConfig read_fork_config(const config::Node& all);

}  // namespace tare
