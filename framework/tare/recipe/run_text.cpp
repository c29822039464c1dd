// Words the line of a finished phase.
#include "tare/recipe/run_text.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/callback/progress.h"

namespace tare {
namespace {

std::string planned(const PhaseReport& phase) {
  if (!phase.planned_peak_bytes) return "";
  const char* const bound = phase.not_planned.empty() ? "" : "at least ";
  return " (planned " + (bound + format_bytes(*phase.planned_peak_bytes)) + ")";
}

std::string in_micro_batches(const PhaseReport& phase) {
  return phase.micro_batch == 0 ? "" : ", in micro-batches of " + format_count(phase.micro_batch);
}

std::string skipped(const PhaseReport& phase) {
  return phase.overflows == 0
             ? ""
             : ", " + format_count(phase.overflows) + " steps skipped for an overflow";
}

std::string stopped(const PhaseReport& phase) {
  return phase.stopped_by.empty() ? "" : ", stopped early by " + printable(phase.stopped_by);
}

std::string rate_text(double per_s) {
  if (per_s >= 10) return format_count(static_cast<int64_t>(per_s));
  std::ostringstream text;
  text << std::setprecision(2) << per_s;
  return text.str();
}

// "accuracy", or "accuracy.age" where a batch has several targets.
bool is_of_metric(const std::string& column, const std::vector<std::string>& metrics) {
  return std::ranges::any_of(metrics, [&](const std::string& name) {
    return column == name || column.starts_with(name + ".");
  });
}

/// Returns "(valid_loss 0.1, accuracy 0.9)" for an epoch or a validation.
template <class Row>
std::string figures_of(const Row& row, const std::vector<std::string>& metrics) {
  const bool valid = !std::isnan(row.valid_loss);
  std::ostringstream text;
  text << '(' << (valid ? "valid_loss " : "train_loss ")
       << (valid ? row.valid_loss : row.train_loss);
  for (const auto& m : row.metrics)
    if (is_of_metric(m.name, metrics)) text << ", " << m.name << ' ' << m.value;
  text << ')';
  return text.str();
}

std::string best_of(const PhaseReport& phase, const std::vector<std::string>& metrics) {
  const auto inside =
      std::ranges::find(phase.validations, phase.restored_step, &ValidationRow::step);
  if (inside != phase.validations.end())
    return ", kept step " + format_count(inside->step) + ' ' + figures_of(*inside, metrics);
  const auto kept = std::ranges::find(phase.epochs, phase.restored_epoch, &EpochRow::epoch);
  const EpochRow* best = kept != phase.epochs.end() ? &*kept : best_epoch(phase.epochs);
  if (phase.epochs.size() < 2 || best == nullptr) return "";
  return (kept != phase.epochs.end() ? ", kept epoch " : ", best epoch ") +
         std::to_string(best->epoch) + ' ' + figures_of(*best, metrics);
}

}  // namespace

std::string leaks_line(const PhaseReport& phase) {
  if (phase.leaks.empty()) return "";
  int64_t blocks = 0, bytes = 0;
  for (const auto& leak : phase.leaks) {
    blocks += leak.blocks;
    bytes += leak.bytes;
  }
  return "leaks: " + format_count(blocks) + (blocks == 1 ? " block, " : " blocks, ") +
         format_bytes(bytes) + "; --verbose lists them, --call-sites names their lines";
}

std::string phase_line(const PhaseReport& phase, const std::vector<std::string>& metrics) {
  return phase.name + ": " + format_seconds(phase.seconds) + ", " + rate_text(phase.samples_per_s) +
         " samples/s" + in_micro_batches(phase) + skipped(phase) + stopped(phase) +
         best_of(phase, metrics) + ", consumed " + format_bytes(phase.consumed_bytes) + ", peak " +
         format_bytes(phase.peak_bytes) + planned(phase) + ", reclaimed " +
         format_bytes(phase.reclaimed_bytes) + ", residual " + format_bytes(phase.residual_bytes);
}

}  // namespace tare
