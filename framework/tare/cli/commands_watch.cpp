// `tare watch`: shows a run while it trains: curves, throughput, memory by category.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iostream>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/terminal.h"
#include "tare/base/text_plot.h"
#include "tare/callback/progress.h"
#include "tare/cli/handlers.h"
#include "tare/cli/interval.h"
#include "tare/report/live.h"
#include "tare/report/read_run.h"
#include "tare/train/interrupt.h"

namespace tare::cli {
namespace {

namespace fs = std::filesystem;

constexpr double kSilence = 15;    // seconds after which a file that was written is old
constexpr size_t kLastEpochs = 5;  // rows of the table

std::string of(int64_t done, int64_t all) {
  return format_count(done) + (all > 0 ? '/' + format_count(all) : "");
}

/// Says what is not known of a run that neither trains now nor has ended, and why.
std::string unknown_text(const report::RunFiles& run) {
  const bool any_epoch =
      std::ranges::any_of(run.phases, [](const auto& phase) { return !phase.epochs.empty(); });
  const std::string rest =
      "step, samples a second and memory are not known; " +
      std::string(any_epoch ? "these epochs have ended:\n" : "no epoch has ended yet\n");
  if (run.recipe.empty())  // of a program's own
    return "tare run has not made this folder, so there is no live.json in it: " + rest;
  return "does not train now, and has not ended: it reads data or plans, or was stopped or killed\n"
         "live.json, which a run writes while it trains, is not there: " +
         rest;
}

/// Returns a line for each phase that a callback ended early.
std::string stops_text(const RunFigures& run) {
  std::string text;
  for (const PhaseReport& phase : run.phases)
    if (!phase.stopped_by.empty())
      text += printable(report::phase_text(phase.name)) + " was stopped early by " +
              printable(phase.stopped_by) + '\n';
  return text;
}

/// Returns what the run does now, in one line or two.
std::string state_text(const report::RunFiles& run,
                       const std::optional<report::LiveFigures>& live) {
  const std::string name = printable(run.name) + ": ";
  if (run.failure)
    return name + "failed: " + run.failure->reason + "\nit failed " + place_text(*run.failure) +
           '\n';
  if (!live) {
    if (!run.figures) return name + unknown_text(run);
    return name + to_string(run.figures->reason) + " in " + format_seconds(run.figures->seconds) +
           '\n' + stops_text(*run.figures);
  }
  const double now = Seconds(std::chrono::system_clock::now().time_since_epoch()).count();
  std::string text = name + printable(report::phase_text(live->phase)) + ", epoch " +
                     of(live->epoch, live->epochs) + ", step " + of(live->step, live->steps) +
                     ", " + format_count(std::llround(live->samples_per_s)) + " samples/s, lr " +
                     short_number(live->lr) + '\n';
  if (now - live->time_s > kSilence)
    text += "no news for " + format_seconds(now - live->time_s) +
            ": the run validates, or its process has been killed\n";
  return text;
}

std::string memory_text(const report::LiveFigures& live) {
  std::string text = "memory " + format_bytes(live.allocated_bytes);
  for (size_t i = 0; i < live.memory.size(); ++i)
    text += (i == 0 ? ": " : ", ") + printable(live.memory[i].name) + ' ' +
            format_bytes(std::llround(live.memory[i].value));
  return text + '\n';
}

std::string plot_of(const report::RunFiles& run, size_t width) {
  TextCurve train{.mark = '*'}, valid{.mark = 'o'};
  double x = 0;
  for (const auto& phase : run.phases)
    for (const auto& row : phase.epochs) {
      ++x;
      train.x.push_back(x);
      train.y.push_back(row.train_loss);
      valid.x.push_back(x);
      valid.y.push_back(row.valid_loss);
    }
  if (train.x.empty()) return {};
  return text_plot({.title = "loss by epoch: training *, validation o",
                    .x_title = "epoch",
                    .curves = {std::move(train), std::move(valid)}},
                   width);
}

std::string last_epochs(const report::RunFiles& run, size_t width) {
  std::vector<EpochRow> rows;
  for (const auto& phase : run.phases)
    for (const auto& row : phase.epochs) rows.push_back(row);
  if (rows.empty()) return {};
  std::string text = epoch_header(rows.back(), width) + '\n';
  for (size_t i = rows.size() - std::min(rows.size(), kLastEpochs); i < rows.size(); ++i)
    text += epoch_line(rows[i], width) + '\n';
  return text;
}

std::string page_of(const report::RunFiles& run, const std::optional<report::LiveFigures>& live) {
  const size_t width = width_for(std::cout);
  std::string text = fitted(state_text(run, live), std::cout);
  if (live && !run.failure) text += fitted(memory_text(*live), std::cout);
  text += plot_of(run, width) + last_epochs(run, width);
  if (run.figures)
    for (const auto& [split, figures] : {std::pair{"test ", figures_of(run.figures->test)},
                                         std::pair{"valid ", figures_of(run.figures->valid)}})
      for (const auto& figure : figures)
        text += split + printable(figure.name) + ' ' + short_number(figure.value) + '\n';
  return text;
}

enum class Form { text, page, json };  // a page takes the place of the one before

/// Shows the run; returns whether there is nothing to wait for, because it has ended.
bool show(const fs::path& folder, Form form) {
  report::RunFiles run = report::read_run(folder, folder);
  const auto live = report::read_live(folder);        // after the tables, so not behind them
  if (!live) run = report::read_run(folder, folder);  // it may have ended between the two
  if (form == Form::page) std::cout << "\033[H\033[2J";
  std::cout << (form == Form::json ? report::json_line(run, live) + '\n' : page_of(run, live))
            << std::flush;
  return run.failure || (run.figures && !live);
}

}  // namespace

int watch_command(const Arguments& arguments) {
  const fs::path folder = arguments.positional().front();
  const bool again = arguments.has("every");
  const bool json = arguments.has("json");
  const bool terminal = ::isatty(STDOUT_FILENO) != 0 && !json;
  const Form form = json ? Form::json : terminal ? Form::page : Form::text;
  const Seconds between = again ? interval(arguments, "every", "tare watch") : Seconds(2);
  const InterruptScope interrupts;
  while (!show(folder, form) && (terminal || again)) {
    wait(between);
    if (interrupt_requested()) break;
  }
  return interrupts.signal() == 0 ? kSuccess : 128 + interrupts.signal();
}

}  // namespace tare::cli
