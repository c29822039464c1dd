// Prints the lines of a run.
#include "tare/recipe/run_printer.h"

#include <ostream>
#include <sstream>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/terminal.h"
#include "tare/base/text_plot.h"
#include "tare/callback/progress.h"
#include "tare/learner/summary.h"
#include "tare/parallel/group.h"
#include "tare/recipe/phase_data.h"
#include "tare/recipe/run_text.h"

namespace tare {

std::string RunPrinter::bold(const std::string& text) const {
  return tinted(text, Tint::bold, takes_colour(*out_));
}

void RunPrinter::line(const std::string& text) const {
  if (out_) *out_ << text << '\n';
}

void RunPrinter::folder(const std::filesystem::path& folder) const {
  const auto first = recipe_.folder / recipe_.name;
  if (folder == first) return;
  line("the folder of this run is " + folder.string() + ": an earlier run stays in " +
       first.string());
}

void RunPrinter::start(Learner& learner, const std::string& data, const Batch& sample) {
  described_ = data;
  if (!out_) return;
  const std::string first = fitted(recipe_.name + ": " + data, *out_);
  *out_ << bold(recipe_.name) << first.substr(recipe_.name.size()) << '\n';
  const std::string stages =
      learner.stages().size() > 1
          ? fitted_lines("stages: " + learner.stages().str(learner.model()) + '\n', *out_)
          : "";
  const std::string ranks = group_ ? fitted_lines("ranks: " + std::to_string(group_->size()) +
                                                      ", each with its part of every batch, by " +
                                                      group_->backend() + '\n',
                                                  *out_)
                                   : "";
  if (verbose_) {
    *out_ << '\n' << summary(learner.model(), width_for(*out_), sample);
  } else {
    *out_ << fitted(summary_line(learner.model()), *out_) << '\n';
  }
  *out_ << stages << ranks << '\n';
}

void RunPrinter::unfinished(const std::filesystem::path& folder) const {
  if (!folder.empty())
    line("an unfinished run is in " + folder.string() + ": --resume would continue it");
}

void RunPrinter::continued(const std::filesystem::path& folder, const std::string& checkpoint,
                           size_t phases_done, bool inside) const {
  line("continues the run in " + folder.string() + " from " + checkpoint + ": " +
       std::to_string(phases_done) + " of " + std::to_string(recipe_.phases.size()) +
       " phases are done" + (inside ? ", the next one is under way\n" : "\n"));
}

void RunPrinter::phase_begin(size_t index) {
  if (!out_) return;
  const std::string name = name_of(recipe_, index), number = phase_number(index);
  const std::string rest =
      (name == number ? "" : ", " + number) + " of " + std::to_string(recipe_.phases.size());
  const bool alone = verbose_ && width_for(*out_) != kAnyWidth;
  *out_ << bold(name) << rest << (alone ? "\n" : ": ");
  column_ = alone ? 0 : name.size() + rest.size() + 2;
}

void RunPrinter::frozen(const FreezeReport& report) const {
  if (!out_) return;
  const size_t width = width_for(*out_);
  line(width == kAnyWidth ? report.str() : wrapped(report.str(), width, column_, 2));
}

void RunPrinter::data(const std::string& description) {
  if (out_ && description != described_) *out_ << fitted(description, *out_) << '\n';
  described_ = description;
}

void RunPrinter::micro_batches(const MemoryPlan& plan) const {
  line("a batch of " + format_count(plan.batch) +
       (plan.returns_cache ? " fits only while the allocator returns its cache in each step, into "
                           : " does not fit into ") +
       format_bytes(plan.capacity_bytes) + ": in micro-batches of " +
       format_count(plan.largest_micro_batch) + ", by the plan");
}

void RunPrinter::recompute(const std::vector<std::string>& blocks) const {
  line(blocks.empty() ? "recompute: auto computes no block again, by the plan"
                      : "computes " + listed(blocks) + " again in the backward, by the plan");
}

void RunPrinter::best(const std::string& figure, const FitResult& fit, bool lost) const {
  if (fit.restored_step > 0)
    line("the weights are those of step " + format_count(fit.restored_step) +
         ", whose validation had the best " + figure);
  else if (fit.restored_epoch > 0)
    line("the weights are those of epoch " + format_count(fit.restored_epoch) +
         (lost ? ", the best that could be saved" : ", which has the best " + figure));
  else
    line("the weights are those of the last epoch" +
         (lost ? ": a better one could not be saved"
               : ", because none is saved as the one with the best " + figure));
}

void RunPrinter::memory(const ExperimentReport& report, const MemoryPeak& peak,
                        int64_t data_bytes) const {
  if (!out_ || !verbose_) return;
  std::ostringstream text;
  text << report;
  if (data_bytes > 0)
    text << "  beside its data set of " << format_bytes(data_bytes)
         << ", which was read before and counts in the peak below\n";
  if (peak.snapshot()) text << "  " << peak.str() << '\n';
  *out_ << fitted_lines(text.str(), *out_);
}

void RunPrinter::found_rate(const LrFindResult& found) const {
  if (!out_) return;
  *out_ << found.str(width_for(*out_)) << "the peak rate of this phase is "
        << short_number(found.lr()) << ", by " << found.suggestion << '\n';
}

void RunPrinter::schedule(const SchedulePreview& preview) const {
  if (out_) *out_ << preview.str(width_for(*out_));
}

void RunPrinter::phase(const PhaseReport& phase) const {
  if (!out_) return;
  *out_ << fitted(phase_line(phase, chosen_metrics(recipe_)), *out_) << '\n';
  std::string devices;
  for (const DeviceFigures& one : phase.devices)
    devices += (devices.empty() ? "  " : "; ") + one.device + ": peak " +
               format_bytes(one.peak_bytes) + ", reclaimed " + format_bytes(one.reclaimed_bytes) +
               ", left " + format_bytes(one.residual_bytes);
  if (!devices.empty()) *out_ << fitted_lines(devices + '\n', *out_);
  // The experiment's report has listed them.
  const std::string leaks = verbose_ ? "" : leaks_line(phase);
  if (!leaks.empty()) *out_ << tinted(leaks, Tint::red, takes_colour(*out_)) << '\n';
  *out_ << '\n';
}

void RunPrinter::evaluation(const SplitFigures& evaluation, bool of_test, bool generated) const {
  if (!out_) return;
  std::ostringstream text;
  text << (of_test ? "test" : "valid (there is no test split)")
       << (generated ? ", on generated data" : "") << ": loss " << evaluation.loss;
  for (const auto& m : evaluation.metrics) text << ", " << m.name << ' ' << m.value;
  *out_ << fitted(text.str(), *out_) << '\n';
}

void RunPrinter::exported(const std::filesystem::path& path, int64_t bytes) const {
  line("exported " + path.string() + ", " + format_bytes(bytes));
}

void RunPrinter::end(const RunReport& report) const {
  if (!out_) return;
  *out_ << fitted_lines(
      "after destroy: " + format_bytes(report.residual_bytes) +
          " tracked above the start; the process holds " + format_bytes(report.process_bytes) +
          "; " + format_seconds(report.seconds) + " in all\ntracker: " +
          report.tracker_cost.str("allocations") + (call_sites_ ? ", call stacks not counted" : ""),
      *out_);
}

void RunPrinter::no_weights(const std::filesystem::path& folder) const {
  const std::string setting = "export=" + recipe_.name + ".tare";
  line("no weights are kept in " + folder.string() + ": run with " + printable(setting) +
       " to write a bundle at the end, or with `save: NAME` in a phase to write a checkpoint");
}

}  // namespace tare
