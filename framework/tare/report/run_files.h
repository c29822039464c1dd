// The values in the files of a run, and the one list of fields that writes and reads each of them.
//
// Below every struct of report.json stands its visit_fields(): the JSON keys in their order. The
// writer, the reader that resumes a run, the page and sweeps use that list, so a new figure is one
// member and one line here. NaN is null in JSON.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tare/report/presence.h"
#include "tare/report/worst_rows.h"

namespace tare {

/// Holds a figure with its name, such as a metric over a whole split.
struct MetricValue {
  std::string name{};  ///< such as "accuracy"
  double value = 0;    ///< of the figure
  /// Whether a lower value is better, as far as the metric says it; in no file.
  std::optional<bool> lower_is_better{};
};

/// Holds one line of the epochs table.
struct EpochRow {
  int64_t epoch = 0;                   ///< from 1, counted over the Learner's life
  double train_loss = 0;               ///< mean over what was counted, as the weights changed
  double valid_loss = 0;               ///< NaN without validation
  std::vector<MetricValue> metrics{};  ///< of the validation, and columns that callbacks added
  double seconds = 0;                  ///< wall time of training and validation
  int64_t samples = 0;                 ///< trained on; 0 in a row of a CSV file, which has none
};
template <class Visit>
void visit_fields(Visit& visit, EpochRow& row) {
  visit("epoch", row.epoch);
  visit("train_loss", row.train_loss);
  visit("valid_loss", row.valid_loss);
  visit.by_name("metrics", row.metrics);
  visit("seconds", row.seconds);
  visit("samples", row.samples);
}

/// Holds the figures of a validation inside an epoch.
struct ValidationRow {
  int64_t step = 0;                    ///< steps of its fit that were taken before it
  int64_t epoch = 0;                   ///< EpochRow::epoch of the epoch under way
  double train_loss = 0;               ///< mean over the epoch so far
  double valid_loss = 0;               ///< mean over what was counted
  std::vector<MetricValue> metrics{};  ///< of the validation
};
template <class Visit>
void visit_fields(Visit& visit, ValidationRow& row) {
  visit("step", row.step);
  visit("epoch", row.epoch);
  visit("train_loss", row.train_loss);
  visit("valid_loss", row.valid_loss);
  visit.by_name("metrics", row.metrics);
}

/// Holds one optimizer step of the table of steps.
struct StepRow {
  int64_t step = 0;  ///< from 1, of its fit
  double loss = 0;   ///< of the step's batch
  double lr = 0;     ///< of the last parameter group
};

/// Reports blocks that a phase left and that no object answers for; see Experiment's leaks.
struct PhaseLeak {
  std::string phase{};  ///< in force when they were allocated: "forward"
  std::string site{};   ///< the line that allocated them; empty without RunOptions::call_sites
  int64_t blocks = 0, bytes = 0;                 ///< alive at the end of the phase
  int64_t youngest_steps = 0, oldest_steps = 0;  ///< training steps begun since
};
template <class Visit>
void visit_fields(Visit& visit, PhaseLeak& leak) {
  visit("phase", leak.phase);
  visit("site", leak.site);
  visit("blocks", leak.blocks);
  visit("bytes", leak.bytes);
  visit("youngest_steps", leak.youngest_steps);
  visit("oldest_steps", leak.oldest_steps);
}

/// Holds the values with which a step of a phase is taken.
struct ScheduledStep {
  int64_t step = 0;                      ///< from 0
  double first_lr = 0, last_lr = 0;      ///< of the first and the last layer group that train
  std::optional<double> momentum{};      ///< unset: the optimizer has none
  std::optional<double> beta2{};         ///< unset: it has no schedule
  std::optional<double> weight_decay{};  ///< unset: it has no schedule
};
template <class Visit>
void visit_fields(Visit& visit, ScheduledStep& step) {
  visit("step", step.step);
  visit("first_lr", step.first_lr);
  visit("last_lr", step.last_lr);
  visit("momentum", step.momentum);
  visit("beta2", step.beta2);
  visit("weight_decay", step.weight_decay);
}

/// Holds the schedule of a phase at some steps, as it is seen before training.
struct ScheduleTable {
  int64_t steps = 0;                    ///< of the phase
  bool relative = false;                ///< rates are shares of a peak that is still to be found
  std::vector<ScheduledStep> points{};  ///< about ten, the first and the last step among them
};
template <class Visit>
void visit_fields(Visit& visit, ScheduleTable& table) {
  visit("steps", table.steps);
  visit("relative", table.relative);
  visit("points", table.points);
}

/// Holds what the search for a phase's rate has found; its curve is in PHASE.lr_find.csv.
struct RateSearch {
  double lr = 0;             ///< the suggestion that was taken: the peak rate of the phase
  std::string suggestion{};  ///< its name
  std::optional<double> valley{}, steepest{}, minimum{};  ///< all suggestions, see LrFindResult
  int64_t steps = 0;                                      ///< of the search
  bool stopped_early = false;                             ///< because the loss rose
  double seconds = 0;                                     ///< wall time
};
template <class Visit>
void visit_fields(Visit& visit, RateSearch& search) {
  visit("lr", search.lr);
  visit("suggestion", search.suggestion);
  visit("valley", search.valley);
  visit("steepest", search.steepest);
  visit("minimum", search.minimum);
  visit("steps", search.steps);
  visit("stopped_early", search.stopped_early);
  visit("seconds", search.seconds);
}

/// Holds the memory of one rank of several in a phase.
struct RankFigures {
  int64_t rank = 0;             ///< its number
  int64_t peak_bytes = 0;       ///< see PhaseReport
  int64_t reclaimed_bytes = 0;  ///< see PhaseReport
  int64_t residual_bytes = 0;   ///< see PhaseReport
};
template <class Visit>
void visit_fields(Visit& visit, RankFigures& rank) {
  visit("rank", rank.rank);
  visit("peak_bytes", rank.peak_bytes);
  visit("reclaimed_bytes", rank.reclaimed_bytes);
  visit("residual_bytes", rank.residual_bytes);
}

/// Holds the memory of one device of several in a phase.
struct DeviceFigures {
  std::string device{};         ///< "cuda:1"
  int64_t peak_bytes = 0;       ///< highest tracked bytes above the start of the phase
  int64_t reclaimed_bytes = 0;  ///< see PhaseReport
  int64_t residual_bytes = 0;   ///< see PhaseReport
};
template <class Visit>
void visit_fields(Visit& visit, DeviceFigures& one) {
  visit("device", one.device);
  visit("peak_bytes", one.peak_bytes);
  visit("reclaimed_bytes", one.reclaimed_bytes);
  visit("residual_bytes", one.residual_bytes);
}

/// Reports one phase of a run. "Tracked" bytes are allocated bytes on the run's device, or the sum
/// over its devices.
struct PhaseReport {
  std::string name{};                        ///< of the phase
  std::vector<EpochRow> epochs{};            ///< whole epochs, in order
  std::vector<ValidationRow> validations{};  ///< inside its epochs, in order
  double seconds = 0;          ///< wall time; of processes before a resume, that of its epochs
  double samples_per_s = 0;    ///< of training, without validation
  int64_t consumed_bytes = 0;  ///< tracked when its work ended, above its start
  int64_t data_bytes = 0;      ///< of its data set, which was read before its start
  int64_t peak_bytes = 0;      ///< highest tracked bytes above its start, and its data set
  /// Samples per forward where a batch of the training was cut into the most parts; 0: all whole.
  int64_t micro_batch = 0;
  int64_t overflows = 0;                        ///< see FitResult
  int64_t restored_epoch = 0;                   ///< see FitResult
  int64_t restored_step = 0;                    ///< see FitResult
  std::string stopped_by{};                     ///< callback that ended it early; empty: none did
  int64_t reclaimed_bytes = 0;                  ///< freed by its purge
  int64_t residual_bytes = 0;                   ///< tracked after the phase minus at its start
  int64_t fragmented_bytes = 0;                 ///< see DeviceReport; 0 on the host
  int64_t allocator_retries = 0;                ///< see DeviceReport
  std::vector<PhaseLeak> leaks{};               ///< on any device; most bytes first
  std::vector<RankFigures> ranks{};             ///< of all, where several train; else empty
  std::vector<DeviceFigures> devices{};         ///< of each, where the run has several; else empty
  std::optional<int64_t> planned_peak_bytes{};  ///< peak_bytes by the plan; unset: no plan
  std::vector<std::string> not_planned{};       ///< what that plan is without; empty: nothing
  std::optional<RateSearch> lr_find{};          ///< unset: the rate was given
  std::optional<ScheduleTable> schedule{};      ///< of a dry run, which does not follow it
};
template <class Visit>
void visit_fields(Visit& visit, PhaseReport& phase) {
  visit("name", phase.name);
  visit("epochs", phase.epochs);
  visit("validations", phase.validations, Presence::where_set);
  visit("seconds", phase.seconds);
  visit("samples_per_s", phase.samples_per_s);
  visit("consumed_bytes", phase.consumed_bytes);
  visit("data_bytes", phase.data_bytes, Presence::since_later);
  visit("peak_bytes", phase.peak_bytes);
  visit("micro_batch", phase.micro_batch, Presence::since_later);
  visit("overflows", phase.overflows, Presence::since_later);
  visit("restored_epoch", phase.restored_epoch, Presence::since_later);
  visit("restored_step", phase.restored_step, Presence::where_set);
  visit("stopped_by", phase.stopped_by, Presence::where_set);
  visit("reclaimed_bytes", phase.reclaimed_bytes);
  visit("residual_bytes", phase.residual_bytes);
  visit("fragmented_bytes", phase.fragmented_bytes, Presence::since_later);
  visit("allocator_retries", phase.allocator_retries, Presence::since_later);
  visit("leaks", phase.leaks, Presence::since_later);
  visit("planned_peak_bytes", phase.planned_peak_bytes, Presence::since_later);
  visit("not_planned", phase.not_planned, Presence::where_set);
  visit("ranks", phase.ranks, Presence::where_set);
  visit("devices", phase.devices, Presence::where_set);
  visit("lr_find", phase.lr_find, Presence::where_set);
  visit("schedule", phase.schedule, Presence::where_set);
}

/// Loss and metrics over a whole split.
struct SplitFigures {
  double loss = 0;                     ///< mean over what was counted
  std::vector<MetricValue> metrics{};  ///< in the order of the options
};
template <class Visit>
void visit_fields(Visit& visit, SplitFigures& split) {
  visit("loss", split.loss);
  visit.by_name("metrics", split.metrics);
}

/// Names a sample by its index in the split, with the loss of its own.
struct WorstSample {
  int64_t index = 0;                 ///< in the split, from 0
  std::string label{}, predicted{};  ///< names of classes; of several labels, a list of them
  double probability = 0;            ///< of the predicted class; NaN of several labels
  double loss = 0;                   ///< of this sample alone
  std::string name{};     ///< of its file below the data folder, see Dataset::sample_name()
  std::string picture{};  ///< a PNG file in base64; empty where the samples are no images
  std::string text{};     ///< its beginning, in one line; empty where the samples are no texts
  std::vector<double> probabilities{};  ///< of each label, where a sample may have several
};
template <class Visit>
void visit_fields(Visit& visit, WorstSample& sample) {
  visit("index", sample.index);
  visit("label", sample.label);
  visit("predicted", sample.predicted);
  visit("probability", sample.probability);
  visit("loss", sample.loss);
  visit("name", sample.name, Presence::where_set);
  visit("picture", sample.picture, Presence::where_set);
  visit("text", sample.text, Presence::where_set);
  visit("probabilities", sample.probabilities, Presence::where_set);
}

/// Counts the samples that have or lack one label of several. A label is predicted where its
/// probability is at least 0.5.
struct LabelCounts {
  int64_t true_positives = 0;   ///< have it, and it is predicted
  int64_t false_positives = 0;  ///< lack it, and it is predicted
  int64_t false_negatives = 0;  ///< have it, and it is not predicted
  int64_t true_negatives = 0;   ///< lack it, and it is not predicted
};
template <class Visit>
void visit_fields(Visit& visit, LabelCounts& counts) {
  visit("true_positives", counts.true_positives);
  visit("false_positives", counts.false_positives);
  visit("false_negatives", counts.false_negatives);
  visit("true_negatives", counts.true_negatives);
}

/// Holds a classifier's confusion matrix and worst samples over a whole split with labels.
struct Classification {
  std::vector<std::string> labels{};  ///< names of classes, by their index
  /// Counts samples, [label][predicted], a square; empty where a sample may have several labels.
  std::vector<std::vector<int64_t>> counts{};
  std::vector<WorstSample> worst{};  ///< highest loss first
  /// Holds the counts of each label where a sample may have several; else empty.
  std::vector<LabelCounts> label_counts{};
};
template <class Visit>
void visit_fields(Visit& visit, Classification& classification) {
  visit("labels", classification.labels);
  visit("counts", classification.counts);
  visit("worst", classification.worst);
  visit("label_counts", classification.label_counts, Presence::where_set);
}

/// Describes the machine and the program with which a run was made.
struct Machine {
  std::string tare{};        ///< version, and the commit that it was built from, where known
  std::string libtorch{};    ///< version
  std::string processor{};   ///< model name
  int64_t threads = 0;       ///< of an operator
  int64_t memory_bytes = 0;  ///< of the machine
  std::string device{};      ///< name of the run's device: the processor's, or that of the GPU
};
template <class Visit>
void visit_fields(Visit& visit, Machine& machine) {
  visit("tare", machine.tare);
  visit("libtorch", machine.libtorch);
  visit("processor", machine.processor);
  visit("threads", machine.threads);
  visit("memory_bytes", machine.memory_bytes);
  visit("device", machine.device);
}

/// Describes a bundle that a run has written.
struct ExportedBundle {
  std::filesystem::path path{};  ///< of the bundle
  int64_t bytes = 0;             ///< size of the file
  int64_t peak_bytes = 0;        ///< allocated on the host while it and other files were written
};
template <class Visit>
void visit_fields(Visit& visit, ExportedBundle& bundle) {
  visit("path", bundle.path);
  visit("bytes", bundle.bytes);
  visit("peak_bytes", bundle.peak_bytes, Presence::since_later);
}

/// Reports the cost of counting a run's allocations, see memory::TrackerCost.
struct TrackerFigures {
  int64_t allocations = 0;  ///< counted in the run
  double ns_each = 0;       ///< processor time for one of them
  double share = 0;         ///< of the run's time, 0 to 1
};
template <class Visit>
void visit_fields(Visit& visit, TrackerFigures& tracker) {
  visit("allocations", tracker.allocations);
  visit("ns_each", tracker.ns_each);
  visit("share", tracker.share);
}

/// Says why a fit, or a run, ended.
enum class StopReason {
  finished,     ///< all epochs
  callback,     ///< a callback ended it before its last epoch
  interrupted,  ///< see interrupt.h; resume() continues
};
/// Lists the words of report.json for a StopReason, in the order of its values.
inline constexpr std::array kStopReasons{"finished", "callback", "interrupted"};
/// Returns the word of report.json for `reason`.
[[nodiscard]] inline const char* to_string(StopReason reason) {
  return kStopReasons[static_cast<size_t>(reason)];
}

/// Reports a whole run, as report.json holds it; after an interrupt what was done of it.
struct RunFigures {
  /// The name of the recipe; one line of its data; the device that it ran on.
  std::string name{}, data{}, device{};
  StopReason reason = StopReason::finished;  ///< why the last fit ended
  std::vector<PhaseReport> phases{};  ///< in order; after an interrupt the last one is not whole
  Machine machine{};                  ///< empty in a file of an earlier version
  std::string resumed_from{};         ///< name of the checkpoint; empty: not resumed
  int64_t resumes = 0;     ///< how often it was resumed; an earlier version wrote no number of them
  bool generated = false;  ///< the data of the last phase are drawn by a program
  std::optional<SplitFigures> test{};   ///< of the test split
  std::optional<SplitFigures> valid{};  ///< of the validation split, where there is no test split
  std::optional<Classification> classification{};  ///< of that split, where it has labels
  /// Holds rows of that split where it is a table with numbers as targets; highest loss first.
  std::vector<report::WorstRow> worst_rows{};
  std::optional<ExportedBundle> exported{};  ///< unset: nothing exported
  int64_t residual_bytes = 0;                ///< tracked after destroy minus before construction
  int64_t process_bytes = 0;                 ///< resident memory of the process at the end
  double seconds = 0;        ///< wall time; of processes before a resume, that of their phases
  TrackerFigures tracker{};  ///< the counts and tags of every allocation of the run
};
template <class Visit>
void visit_fields(Visit& visit, RunFigures& run) {
  visit("name", run.name);
  visit("data", run.data);
  visit("device", run.device);
  visit.one_of("reason", run.reason, kStopReasons);
  visit("phases", run.phases);
  visit("machine", run.machine, Presence::since_later);
  visit("resumed_from", run.resumed_from, Presence::where_set);
  visit("resumes", run.resumes, Presence::where_set);
  visit("generated", run.generated, Presence::where_set);
  visit("test", run.test, Presence::where_set);
  visit("valid", run.valid, Presence::where_set);
  visit("classification", run.classification, Presence::where_set);
  visit("worst_rows", run.worst_rows, Presence::where_set);
  visit("export", run.exported, Presence::where_set);
  visit("residual_bytes", run.residual_bytes);
  visit("process_bytes", run.process_bytes);
  visit("seconds", run.seconds);
  visit("tracker", run.tracker, Presence::since_later);
}

/// Returns the loss and the metrics by their names; nothing where `split` is unset.
[[nodiscard]] std::vector<MetricValue> figures_of(const std::optional<SplitFigures>& split);

/// Returns the figures as the text of report.json, without a newline at the end. Bytes that are not
/// UTF-8 become U+FFFD.
[[nodiscard]] std::string to_json(const RunFigures& run);

/// Reads the text of a report.json of this version or an earlier one; keys that it does not know
/// are skipped. Throws FormatError with `file` and the key for anything else, and for a
/// classification whose counts are no square or whose pictures are no PNG files below 64 KiB.
[[nodiscard]] RunFigures run_from_json(const std::string& text, const std::filesystem::path& file);

}  // namespace tare
