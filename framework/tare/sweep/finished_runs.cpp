// Prints, counts and writes the runs that have ended.
#include "tare/sweep/finished_runs.h"

#include <algorithm>
#include <cmath>
#include <ostream>

#include "tare/base/bytes.h"
#include "tare/base/csv.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/config/scalar.h"
#include "tare/search/value_text.h"
#include "tare/sweep/outcome.h"
#include "tare/sweep/run_mark.h"
#include "tare/sweep/run_name.h"

namespace tare::sweep {
namespace {

constexpr std::chrono::seconds kWriteEvery{1};

/// Writes a number as it is, and text so that a spreadsheet takes it for text.
std::string field(const std::string& text) {
  constexpr size_t kLongest = size_t{16} << 10;  // whole, but for what does not fit into a line
  return config::as_number(text) ? text : csv_field(text, kLongest);
}

std::string line(const std::vector<std::string>& fields) {
  std::string text;
  for (const auto& f : fields) text += (&f == &fields.front() ? "" : ",") + field(f);
  return text + '\n';
}

}  // namespace

std::string run_data_text(const std::string& metric, const std::vector<Trial>& trials) {
  std::vector<std::string> keys;
  for (const Trial& trial : trials)
    for (const auto& [key, value] : trial.cell.values)
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  std::vector<std::string> header{"trial", "name", "state"};
  header.insert(header.end(), keys.begin(), keys.end());
  for (const auto& column : {metric, std::string("peak_bytes"), std::string("seconds")})
    header.push_back("run_" + column);
  std::string text = line(header);
  for (const Trial& trial : trials) {
    std::vector<std::string> row{std::to_string(trial.number), trial.run_name,
                                 to_string(trial.state)};
    for (const auto& key : keys) {
      const auto* value = trial.cell.find(key);
      row.push_back(value ? search::python_text(*value) : "");
    }
    row.push_back(std::isnan(trial.value) ? "" : config::number_text(trial.value));
    row.push_back(trial.peak_bytes > 0 ? std::to_string(trial.peak_bytes) : "");
    row.push_back(config::number_text(trial.seconds));
    text += line(row);
  }
  return text;
}

void FinishedRuns::replace(std::vector<Trial> ended) {
  ended_ = std::move(ended);
  if (!write_files_) return;
  for (const Trial& trial : ended_)
    if (trial.state != search::TrialState::failed) files_.add_missing(trial);
}

const Trial& FinishedRuns::add(const Trial& trial, const Outcome& outcome) {
  print(trial, outcome);
  const auto place = std::ranges::upper_bound(ended_, trial.number, {}, &Trial::number);
  Trial& ended = *ended_.insert(place, trial);
  ended.state = outcome.state;
  ended.reason = outcome.reason;
  ended.peak_bytes = outcome.peak_bytes;
  ended.seconds = outcome.seconds;
  ended.ended = outcome.ended;
  if (outcome.state != search::TrialState::failed) ended.value = outcome.value();
  if (write_files_ && outcome.state != search::TrialState::failed) files_.add(ended);
  behind_ = true;
  if (std::chrono::steady_clock::now() - written_ >= kWriteEvery) write();
  return ended;
}

void FinishedRuns::write() {
  const std::string text =
      recorder_ ? recorder_->table(ended_) : run_data_text(sweep_.metric.name, ended_);
  io::write_atomically(sweep_.log_dir / "run_data.csv", text, io::Flush::no);
  written_ = std::chrono::steady_clock::now();
  behind_ = false;
}

bool FinishedRuns::write_more() {
  const bool wrote = files_.write_one();
  behind_ = behind_ || wrote;  // a recorder's table may be made from them
  if (!wrote && (!behind_ || std::chrono::steady_clock::now() - written_ < kWriteEvery))
    return false;
  if (!wrote) write();
  return true;
}

SweepProgress FinishedRuns::progress() const {
  SweepProgress now;
  const bool most = sweep_.metric.goal == "maximize";
  for (const Trial& trial : ended_) {
    if (trial.is_earlier) continue;
    if (trial.state == search::TrialState::failed) ++now.failed;
    if (trial.state == search::TrialState::pruned) ++now.pruned;
    if (trial.state != search::TrialState::complete) continue;
    ++now.complete;
    if (!now.best.empty() && !(most ? trial.value > now.best_value : trial.value < now.best_value))
      continue;
    now.best = trial.run_name;
    now.best_value = trial.value;
  }
  return now;
}

void FinishedRuns::print(const Trial& trial, const Outcome& outcome) const {
  if (!out_) return;
  *out_ << trial.run_name << "  ";
  switch (outcome.state) {
    case search::TrialState::complete:
      *out_ << sweep_.metric.name << ' ' << outcome.value() << ", peak "
            << (outcome.peak_bytes > 0 ? format_bytes(outcome.peak_bytes) : "unknown") << ", "
            << format_seconds(outcome.seconds);
      break;
    case search::TrialState::pruned:
      *out_ << "pruned after " << outcome.values.size()
            << (outcome.values.size() == 1 ? " epoch, " : " epochs, ") << sweep_.metric.name << ' '
            << outcome.value();
      break;
    default:
      *out_ << "failed: " << printable(outcome.reason);
      const std::string why = failure_in(sweep_.log_dir / trial.run_name);
      if (!why.empty()) *out_ << ": " << why;
      const auto errors =
          sweep_.log_dir / trial.run_name / (log_stem(sweep_, trial.run_name) + ".err");
      if (std::filesystem::exists(errors)) *out_ << "; see " << errors.string();
  }
  *out_ << std::endl;
}

}  // namespace tare::sweep
