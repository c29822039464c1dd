#include "tare/sweep/results.h"

#include <algorithm>
#include <cmath>
#include <ostream>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/sweep/run_data.h"
#include "tare/sweep/run_mark.h"

namespace tare::sweep {
namespace {

constexpr std::chrono::seconds kWriteEvery{1};

}  // namespace

void Results::become(std::vector<Trial> ended) {
  ended_ = std::move(ended);
  if (!write_files_) return;
  for (const Trial& trial : ended_)
    if (trial.state != TrialState::failed) records_.add_missing(trial);
}

const Trial& Results::add(const Trial& trial, const Outcome& outcome) {
  say(trial, outcome);
  const auto place = std::ranges::upper_bound(ended_, trial.number, {}, &Trial::number);
  Trial& ended = *ended_.insert(place, trial);
  ended.state = outcome.state;
  ended.reason = outcome.reason;
  ended.peak_bytes = outcome.peak_bytes;
  ended.seconds = outcome.seconds;
  ended.ended = outcome.ended;
  if (outcome.state != TrialState::failed) ended.value = outcome.value();
  if (write_files_ && outcome.state != TrialState::failed) records_.add(ended);
  behind_ = true;
  if (std::chrono::steady_clock::now() - written_ >= kWriteEvery) write();
  return ended;
}

void Results::write() {
  const std::string text = sweep_.furcate.kind == config::Kind::map
                               ? furcate_.text(ended_)
                               : run_data_text(sweep_.metric.name, ended_);
  io::write_atomically(sweep_.log_dir / "run_data.csv", text, io::Flush::no);
  written_ = std::chrono::steady_clock::now();
  behind_ = false;
}

bool Results::write_more() {
  const bool wrote = records_.write_one();
  behind_ = behind_ || wrote;  // furcate's table is made from them
  if (!wrote && (!behind_ || std::chrono::steady_clock::now() - written_ < kWriteEvery))
    return false;
  if (!wrote) write();
  return true;
}

SweepProgress Results::progress() const {
  SweepProgress now;
  const bool most = sweep_.metric.goal == "maximize";
  for (const Trial& trial : ended_) {
    if (trial.state == TrialState::failed) ++now.failed;
    if (trial.state == TrialState::pruned) ++now.pruned;
    if (trial.state != TrialState::complete) continue;
    ++now.complete;
    if (!now.best.empty() && !(most ? trial.value > now.best_value : trial.value < now.best_value))
      continue;
    now.best = trial.run_name;
    now.best_value = trial.value;
  }
  return now;
}

void Results::say(const Trial& trial, const Outcome& outcome) const {
  if (!out_) return;
  *out_ << trial.run_name << "  ";
  switch (outcome.state) {
    case TrialState::complete:
      *out_ << sweep_.metric.name << ' ' << outcome.value() << ", peak "
            << format_bytes(outcome.peak_bytes) << ", " << format_seconds(outcome.seconds);
      break;
    case TrialState::pruned:
      *out_ << "pruned after " << outcome.values.size()
            << (outcome.values.size() == 1 ? " epoch, " : " epochs, ") << sweep_.metric.name << ' '
            << outcome.value();
      break;
    default:
      *out_ << "failed: " << printable(outcome.reason);
      const auto errors =
          sweep_.log_dir / trial.run_name / (log_stem(sweep_, trial.run_name) + ".err");
      if (std::filesystem::exists(errors)) *out_ << "; see " << errors.string();
  }
  *out_ << std::endl;
}

}  // namespace tare::sweep
