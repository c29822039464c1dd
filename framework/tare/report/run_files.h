// RunFiles: what a run's folder says, as values. Internal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tare/report/timeline.h"

namespace tare::report {

struct EpochLine {
  double train_loss = 0, valid_loss = 0;  ///< NaN where there is none
  std::vector<double> metrics{};          ///< as PhaseFiles::metrics
};

struct StepLine {
  int64_t step = 0;
  double loss = 0, lr = 0;
};

/// Blocks that a phase left behind and that no object answers for.
struct LeakLine {
  std::string phase{}, site{};  ///< where they were allocated; the site may be empty
  int64_t blocks = 0, bytes = 0, youngest_steps = 0, oldest_steps = 0;
};

/// The figures of a phase in report.json; bytes are tracked bytes above the phase's start.
struct PhaseFigures {
  double seconds = 0, samples_per_s = 0;
  int64_t consumed_bytes = 0, peak_bytes = 0, reclaimed_bytes = 0, residual_bytes = 0;
  std::optional<int64_t> planned_peak_bytes{};
  int64_t micro_batch = 0;  ///< samples per forward where batches were cut; 0: all whole
  int64_t overflows = 0;    ///< steps that fp16 left out
  /// The epoch, from 1 over all phases, whose weights the phase ended with, where it restored those
  /// of an earlier one; 0: the last.
  int64_t restored_epoch = 0;
  std::vector<LeakLine> leaks{};
};

struct PhaseFiles {
  std::string name{};
  std::vector<std::string> metrics{};
  std::vector<EpochLine> epochs{};
  std::vector<StepLine> steps{};
  std::optional<PhaseFigures> figures{};  ///< unset until the phase has ended
};

struct NamedValue {
  std::string name{};
  double value = 0;
};

struct WorstLine {
  int64_t index = 0;
  std::string name{};  ///< of its file below the data folder; empty: none
  std::string label{}, predicted{};
  double probability = 0, loss = 0;
  std::string picture{};  ///< a PNG file in base64; empty: none
};

/// Samples of the test split by label and by prediction.
struct ConfusionFigures {
  std::vector<std::string> labels{};
  std::vector<std::vector<int64_t>> counts{};  ///< [label][predicted], a square
  std::vector<WorstLine> worst{};
};

/// The machine on which the run was made; texts are empty and numbers 0 where the file does not
/// say.
struct MachineFigures {
  std::string tare{}, libtorch{}, processor{}, device{};
  int64_t threads = 0, memory_bytes = 0;
};

/// The whole run, from report.json.
struct RunFigures {
  std::string data{}, device{}, reason{}, resumed_from{}, export_path{};
  std::vector<NamedValue> test{};   ///< loss and metrics; empty without a test
  std::vector<NamedValue> valid{};  ///< the same of the validation split, where there is no test
  std::optional<ConfusionFigures> confusion{};
  MachineFigures machine{};
  int64_t resumes = 0;  ///< 0 with a resumed_from: the file does not say how many
  int64_t export_bytes = 0, residual_bytes = 0, process_bytes = 0;
  double seconds = 0;
};

/// A value. What a file does not have is left out and named in `missing`.
struct RunFiles {
  std::string name{};
  std::string recipe{};  ///< recipe.yaml as text
  std::vector<PhaseFiles> phases{};
  std::optional<RunFigures> figures{};  ///< unset until the run has ended
  std::optional<Timeline> memory{};
  std::vector<std::string> missing{};  ///< sentences
};

/// Returns the metrics of all phases, each once, in the order in which they name them.
[[nodiscard]] std::vector<std::string> metric_names(const RunFiles& run);

/// Reads recipe.yaml, report.json, the CSV files of the phases, and timeline.csv of `trace`, which
/// need not be there if `trace` is the run's folder. Throws IoError if the folder or the trace is
/// missing, ConfigError if the folder holds no run, FormatError and ConfigError for a damaged file.
[[nodiscard]] RunFiles read_run(const std::filesystem::path& folder,
                                const std::filesystem::path& trace);

}  // namespace tare::report
