// tare sweep: runs, plans and reports sweeps.
#include <ATen/Parallel.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/base/terminal.h"
#include "tare/cli/handlers.h"
#include "tare/cli/output.h"
#include "tare/cli/ranks.h"
#include "tare/cli/shipped.h"
#include "tare/cli/sweep_check.h"
#include "tare/cli/sweep_plan.h"
#include "tare/cli/sweep_slots.h"
#include "tare/cli/sweep_status.h"
#include "tare/cli/sweep_table.h"
#include "tare/data/datasets.h"
#include "tare/furcate/configuration.h"
#include "tare/furcate/fork_runner.h"
#include "tare/furcate/recorder.h"
#include "tare/launch/executors.h"
#include "tare/launch/fork_server.h"
#include "tare/launch/local_executor.h"
#include "tare/recipe/phase_data.h"
#include "tare/recipe/read_recipe.h"
#include "tare/report/sweep_report.h"
#include "tare/runtime/init.h"
#include "tare/search/sampler.h"
#include "tare/search/value_text.h"
#include "tare/sweep/coordinator.h"
#include "tare/sweep/gpu_slots.h"
#include "tare/sweep/rebuild.h"
#include "tare/sweep/run_name.h"
#include "tare/sweep/sweep_file.h"
#include "tare/sweep/sweep_page.h"
#include "tare/train/interrupt.h"

namespace tare::cli {
namespace {

using sweep::SweepOptions;

/// Returns the file of this program.
std::filesystem::path own_file() { return std::filesystem::read_symlink("/proc/self/exe"); }

std::vector<std::string> run_of(const SweepOptions& sweep, const launch::Executor& executor,
                                const std::vector<std::string>& settings,
                                const launch::DeviceSlot& slot, int64_t budget_bytes) {
  const bool as_ranks = sweep.resources.ranks > 1 && executor.starts_ranks();
  // This very program, also if its file has been replaced meanwhile, unless another program, such
  // as srun, executes it.
  std::vector<std::string> command{as_ranks ? own_file().string() : "/proc/self/exe", "run",
                                   sweep.recipe.string()};
  command.insert(command.end(), settings.begin(), settings.end());
  command.insert(command.end(), {"--resume=auto", "--overwrite"});  // the folder is the run's own
  if (!executor.has_own_memory_limits())
    command.insert(command.end(), {slot.is_gpu() ? "--device-budget" : "--host-budget",
                                   std::to_string(budget_bytes)});
  if (sweep.resources.ranks > 1 && !as_ranks)
    command.insert(command.end(), {"--ranks", std::to_string(sweep.resources.ranks)});
  if (const auto trace = furcate::monitor_of(sweep); trace.enabled)
    command.push_back("--monitor-memory=" + search::flow_text(config::to_node(trace)));
  return command;
}

int64_t epochs_of(const RecipeOptions& recipe) {
  int64_t all = 0;
  for (const PhaseOptions& phase : recipe.phases) {
    if (phase.duration && phase.duration->epochs == 0) return 0;  // only its data say how many
    all += duration_of(phase).epochs;
  }
  return all;
}

/// Lets no run try the network again where this process has tried it in vain.
std::vector<std::pair<std::string, std::string>> variables_of_run() {
  if (!datasets::download_has_failed()) return {};
  return {{datasets::kOffline, "1"}};
}

/// Reads a sweep and checks it now: an error is better before the first run than after the last.
SweepOptions read_checked_sweep(const std::filesystem::path& file,
                                const std::vector<std::string>& overrides) {
  SweepOptions sweep = furcate::read_sweep(file, overrides);
  check_sweep(sweep);
  return sweep;
}

/// Executes a run in a process that the fork server has made.
int main_of_run(const std::vector<std::string>& command) {
  try {
    at::set_num_threads(std::stoi(std::getenv("OMP_NUM_THREADS")));
    std::vector<char*> words;
    for (const auto& word : command) words.push_back(const_cast<char*>(word.c_str()));
    const int count = static_cast<int>(words.size()) - 1;  // without the program
    return run_command(parse(find_command("run"), count, words.data() + 1));
  } catch (...) {
    return report_error(std::current_exception());
  }
}

/// Returns the executor of a sweep. `start` makes processes of this machine; empty: they are
/// executed.
std::unique_ptr<launch::Executor> executor_of(const SweepOptions& sweep,
                                              launch::StartProcess start = {}) {
  return launch::executor_type(sweep.executor)
      .make({.folder = sweep.log_dir,
             .agent = {own_file().string(), "sweep", "agent", sweep.executor.name},
             .start = std::move(start),
             .ranks = sweep.resources.ranks});
}

constexpr size_t kShownDraws = 10;  // before any run has ended

/// Returns all cells of a grid, or the first that a sampler draws, which do not depend on how runs
/// go.
std::vector<search::Cell> first_cells(const SweepOptions& sweep) {
  const bool draws = search::draws(sweep);
  auto cells = draws ? std::vector<search::Cell>() : search::grid(sweep);
  const auto most = static_cast<size_t>(sweep.trials);
  if (sweep.trials > 0 && cells.size() > most) cells.resize(most);
  if (!draws) return cells;
  std::vector<search::SeenTrial> seen;
  while (seen.size() < kShownDraws && (most == 0 || seen.size() < most)) {
    const auto number = static_cast<int64_t>(seen.size());
    const auto cell = search::sample(sweep, seen, number, sweep.seed);
    if (!cell) break;
    seen.push_back({.number = number, .params = point_of(sweep.parameters, *cell)});
    cells.push_back(*cell);
  }
  return cells;
}

int plan(const SweepOptions& sweep) {
  const auto executor = executor_of(sweep);
  const auto slots = prepared_slots(sweep, *executor);
  check_sweep_with_data(sweep);
  PlannedRounds rounds(sweep, *executor, slots);
  for (const auto& cell : first_cells(sweep)) rounds.add(cell);
  rounds.print();
  return kSuccess;
}

/// Makes the store again that was lost.
int rebuild(const SweepOptions& sweep) {
  const auto report =
      sweep::rebuild_store(sweep, sweep.origin.is_program ? outcome_of_fork : nullptr);
  std::cout << sweep.name << ": the store has " << report.complete << " complete, " << report.pruned
            << " pruned, " << report.failed << " failed, " << report.waiting << " waiting; "
            << report.unknown << " folders are not known\n";
  return report.unknown == 0 ? kSuccess : kFailed;
}

/// Stops the sweep as Ctrl-C does in the terminal of its coordinator.
int stop(const SweepOptions& sweep) {
  const auto mark = contents_of(sweep).coordinator;
  if (!launch::is_alive(mark)) {
    std::cout << sweep.name << ": is not running on this machine\n";
    return kSuccess;
  }
  if (kill(static_cast<pid_t>(mark.pid), SIGINT) != 0)
    throw IoError("tare sweep stop", "process " + std::to_string(mark.pid), errno);
  std::cout << sweep.name << ": its runs save and end; tare sweep run continues it\n";
  return kSuccess;
}

/// Writes the page beside the store.
int write_page(const SweepOptions& sweep) {
  const auto file = sweep.log_dir / "report.html";
  io::write_atomically(file, report::sweep_page(sweep::summary_of(sweep, contents_of(sweep))));
  std::cout << file.string() << '\n';
  return kSuccess;
}

/// Prints what became of the runs of a sweep.
void print_end(const SweepOptions& sweep, const sweep::SweepReport& report) {
  const auto trials = contents_of(sweep).trials;
  std::cout << sweep.name << ": " << report.complete << " complete, ";
  if (report.pruned > 0) std::cout << report.pruned << " pruned, ";
  std::cout << report.failed << " failed, " << report.waiting << " waiting; " << report.started
            << " started; " << (sweep.log_dir / "run_data.csv").string()
            << generated_text(sweep, trials) << '\n';
  std::cout << best_text(sweep, trials) << fold_text(sweep, trials);
  const std::string legend = sweep::name_legend(sweep);
  if (!legend.empty()) std::cout << fitted(legend, std::cout) << '\n';
  if (report.interrupted)
    std::cout << sweep.name << ": stopped by a signal; its runs have saved, and tare sweep run "
              << "continues it\n";
}

int run(sweep::SweepFile& file, bool retry_failed) {
  continue_without_output();
  const SweepOptions sweep = file.options();
  std::signal(SIGCHLD, SIG_DFL);  // ends are waited for
  // Before anything begins a thread, also in this process's children.
  std::optional<launch::ForkServer> server;
  if (!launch::executor_type(sweep.executor).is_remote)
    server.emplace([] { init({.threads = 1, .cuda = CudaMode::off}); }, main_of_run);
  // On the host, and of one rank: a GPU's driver does not survive a fork, and several ranks are
  // started by a program that reads its own command.
  bool forks = false;
  const auto executor = executor_of(sweep, [&](const launch::ChildStart& start) {
    return forks ? server->start(start) : launch::Child(start);
  });
  const auto slots = prepared_slots(sweep, *executor);
  forks = !slots.front().is_gpu() && sweep.resources.ranks == 1;
  check_sweep_with_data(sweep);
  // Until the process ends: a signal after the last run must not turn success into failure.
  static const InterruptScope& interrupts = *new InterruptScope;
  Plans plans(sweep.recipe, slots.front(), sweep.resources.ranks, /*download=*/true);
  executor->require_available();
  const bool on_named_card =
      slots.front().is_gpu() && names_card(shared_recipe(sweep).learner.device);
  const auto recorder = furcate::recorder_of(sweep);
  std::optional<LiveTable> live;
  if (isatty(STDOUT_FILENO) == 1) live.emplace(std::cout, sweep.metric.name);
  sweep::SweepHost host{
      .command =
          [&](auto settings, const auto& slot, int64_t bytes) {
            if (on_named_card) settings.push_back(std::string("device=") + kCardOfRun);
            return run_of(sweep, *executor, settings, slot, bytes);
          },
      .slots = [&](const auto& resources) { return slots_of(sweep, *executor, resources, slots); },
      .is_lost = [](const auto& slot) { return slot.is_gpu() && sweep::is_lost(slot); },
      .predict = [&](const auto& settings) { return plans.bytes(settings); },
      .signature = [&](const auto& settings) { return plans.signature(settings); },
      .epochs =
          [&](const auto& settings) { return epochs_of(read_recipe(sweep.recipe, settings)); },
      .environment = variables_of_run,
      .recorder = recorder.get(),
      .executor = executor.get(),
      .edited = [&] { return file.changed(); },
      .interrupted = [] { return interrupt_requested(); },
      .retry_failed = retry_failed,
      .out = live ? &live->lines() : &std::cout};
  if (live) host.progress = [&](const auto& progress) { live->draw(progress); };
  // Where nothing is reserved, only the settings are looked at.
  if (executor->has_own_memory_limits())
    host.predict = [&](const auto& settings) -> std::optional<int64_t> {
      (void)read_recipe(sweep.recipe, settings);
      return 0;
    };
  const auto report = sweep::run_sweep(sweep, host);
  live.reset();
  print_end(sweep, report);
  if (report.interrupted) return 128 + interrupts.signal();
  return report.failed == 0 && report.waiting == 0 ? kSuccess : kFailed;
}

}  // namespace

int sweep_command(const Arguments& arguments) {
  std::vector<std::string> words = arguments.positional();
  const std::string& verb = words.front();
  const std::vector<std::string> verbs{"run",  "plan",  "status",  "report",
                                       "stop", "retry", "rebuild", "agent"};
  if (std::ranges::find(verbs, verb) == verbs.end())
    throw ConfigError("tare sweep", "'" + printable(verb) + "' is not one of " + listed(verbs) +
                                        did_you_mean(verb, verbs));
  if (verb == "agent") {
    continue_without_output();
    if (words.size() != 3)
      throw ConfigError("tare sweep agent",
                        "needs an executor and a folder; a sweep starts its agents itself");
    return launch::serve_agent(words[1], words[2]);
  }
  if (const std::string kind = other_kind(words[1]); !kind.empty())
    throw ConfigError("tare sweep", "'" + printable(words[1]) + "' is no sweep: it " + kind +
                                        "; give the YAML file of a sweep");
  if (!std::filesystem::exists(words[1])) words[1] = recipe_path(words[1]).string();
  const std::vector<std::string> overrides(words.begin() + 2, words.end());
  if (verb == "status" || verb == "report" || verb == "stop" || verb == "rebuild") {
    const SweepOptions sweep = furcate::read_any_sweep(words[1], overrides);
    if (verb == "status") {
      print_status(sweep);
      return kSuccess;
    }
    if (verb == "report") return write_page(sweep);
    return verb == "stop" ? stop(sweep) : rebuild(sweep);
  }
  if (verb != "plan") refuse_ranks("tare sweep " + verb);
  sweep::SweepFile file(words[1], overrides, read_checked_sweep);
  return verb == "plan" ? plan(file.options()) : run(file, verb == "retry");
}

}  // namespace tare::cli
