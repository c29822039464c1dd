#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iostream>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/cli/command.h"
#include "tare/learner/interrupt.h"
#include "tare/memory/init.h"
#include "tare/plan/measurements.h"
#include "tare/recipe/plan.h"
#include "tare/sweep/coordinator.h"
#include "tare/sweep/identity.h"

namespace tare::cli {
namespace {

using sweep::SweepOptions;
using sweep::TrialState;

/// The highest bytes of tensors over the phases; unset if a phase cannot be told.
std::optional<int64_t> planned_bytes(const SweepOptions& sweep,
                                     const std::vector<std::string>& settings) {
  const RecipeOptions recipe = read_recipe(sweep.recipe, settings);
  int64_t bytes = 0;
  for (const MemoryPlan& phase : plan_recipe(recipe, {.advice = false}).phases) {
    if (!phase.known()) return std::nullopt;
    bytes = std::max(bytes, phase.reserved_bytes);
  }
  return bytes;
}

std::vector<std::string> run_of(const SweepOptions& sweep, const std::vector<std::string>& settings,
                                int64_t budget_bytes) {
  // This very program, also if its file has been replaced meanwhile.
  std::vector<std::string> command{"/proc/self/exe", "run", sweep.recipe.string()};
  command.insert(command.end(), settings.begin(), settings.end());
  command.insert(command.end(), {"--resume=auto", "--host-budget", std::to_string(budget_bytes)});
  return command;
}

/// Better before the first run than after the last.
void check_metric(const SweepOptions& sweep) {
  auto names = read_recipe(sweep.recipe, sweep::override_texts(sweep.set)).metrics;
  names.insert(names.end(), {"valid_loss", "train_loss"});
  if (std::ranges::find(names, sweep.metric.name) == names.end())
    throw ConfigError("tare sweep", "metric.name", "is none of the recipe's", config::joined(names),
                      printable(sweep.metric.name));
}

int run(const SweepOptions& sweep, bool retry_failed) {
  const InterruptScope interrupts;
  std::signal(SIGCHLD, SIG_DFL);  // ends are waited for
  const auto report = sweep::run_sweep(
      sweep, {.command = [&](const auto& settings,
                             int64_t bytes) { return run_of(sweep, settings, bytes); },
              .predict = [&](const auto& settings) { return planned_bytes(sweep, settings); },
              .interrupted = [] { return interrupt_requested(); },
              .retry_failed = retry_failed,
              .out = &std::cout});
  std::cout << sweep.name << ": " << report.complete << " complete, " << report.failed
            << " failed, " << report.waiting << " waiting; " << report.started << " started; "
            << (sweep.log_dir / "run_data.csv").string() << '\n';
  if (report.interrupted) return 128 + interrupts.signal();
  return report.failed == 0 ? kSuccess : kFailed;
}

int plan(const SweepOptions& sweep) {
  const auto cells = sweep::grid(sweep);
  const auto room = sweep::host_room(sweep.resources);
  std::cout << sweep.name << ": " << cells.size() << " runs, " << room.jobs << " at a time, in "
            << format_bytes(room.total_bytes) << '\n';
  int64_t round = 1, together = 0, held = 0, number = 0;
  for (const auto& cell : cells) {
    if (sweep.trials > 0 && number == sweep.trials) break;
    const auto name = sweep::run_name(sweep.name, number++, cell);
    const auto planned = planned_bytes(sweep, sweep::settings_of(sweep, cell, name));
    const int64_t asked = sweep::reservation(sweep, planned);
    const int64_t bytes = std::min(asked > 0 ? asked : room.total_bytes, room.total_bytes);
    if (together == room.jobs || held + bytes > room.total_bytes) {
      together = held = 0;
      ++round;
    }
    ++together;
    held += bytes;
    std::cout << name << "  round " << round << "  planned "
              << (planned ? format_bytes(*planned) : "cannot tell") << ", reserves "
              << format_bytes(bytes) << "  " << sweep::python_text(cell) << '\n';
  }
  return kSuccess;
}

int status(const SweepOptions& sweep) {
  const auto file = sweep.log_dir / (sweep.name + ".sqlite");
  if (!std::filesystem::exists(file))
    throw ConfigError("tare sweep", "nothing of '" + sweep.name + "' has run: " + file.string() +
                                        " is not there; tare sweep run starts it");
  const sweep::Store store(file, sweep);
  for (const auto& trial : store.trials()) {
    if (trial.reason == sweep::kDropped) continue;
    std::cout << trial.run_name << "  " << to_string(trial.state);
    if (trial.state == TrialState::complete)
      std::cout << "  " << sweep.metric.name << ' ' << trial.value << ", peak "
                << format_bytes(trial.peak_bytes) << ", " << format_seconds(trial.seconds);
    if (!trial.reason.empty()) std::cout << "  " << printable(trial.reason);
    std::cout << '\n';
  }
  return kSuccess;
}

}  // namespace

int sweep_command(const Arguments& arguments) {
  const auto& words = arguments.positional();
  const std::string& verb = words.front();
  if (verb != "run" && verb != "plan" && verb != "status" && verb != "retry")
    throw ConfigError("tare sweep", "'" + printable(verb) + "' is not run, plan, status or retry" +
                                        did_you_mean(verb, {"run", "plan", "status", "retry"}));
  const SweepOptions sweep = sweep::read_sweep(words[1], {words.begin() + 2, words.end()});
  if (verb == "status") return status(sweep);
  // What an operator takes depends on its threads: plans have those of the runs.
  init({.threads = static_cast<int>(sweep::threads_of_run(sweep::host_room(sweep.resources)))});
  plan::measurements().keep_in(io::cache_home() / "plan");
  check_metric(sweep);
  return verb == "plan" ? plan(sweep) : run(sweep, verb == "retry");
}

}  // namespace tare::cli
