// Starts a program again for each cell of its sweep, and reads how it went.
#include "tare/furcate/fork_runner.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <map>
#include <optional>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/furcate/configuration.h"
#include "tare/furcate/fork_config.h"
#include "tare/furcate/recorder.h"
#include "tare/runtime/exit_code.h"
#include "tare/runtime/threads.h"
#include "tare/sweep/coordinator.h"
#include "tare/sweep/gpu_slots.h"
#include "tare/sweep/run_record.h"
#include "tare/sweep/sweep_file.h"
#include "tare/train/interrupt.h"

namespace tare {
namespace {

namespace fs = std::filesystem;
using config::Node;
using launch::DeviceSlot;

constexpr const char* kRunData = "run_data.json";

/// Returns the values by epoch, the last one from run_data.json.
std::vector<double> values_of(const fs::path& folder, const char* history_key, double last) {
  std::vector<double> values = sweep::read_history(folder, history_key);
  if (values.empty()) values.push_back(last);
  values.back() = last;
  return values;
}

void read_results(const fs::path& folder, sweep::Outcome& outcome) {
  const auto data = sweep::read_run_data(folder);
  if (!data) {
    outcome.reason = "no results in " + std::string(kRunData);
    return;
  }
  const auto validated = data->find("val_loss");
  const double value = validated.value_or(data->find("train_loss").value_or(std::nan("")));
  const auto known = [&data](const char* name) {
    const double number = data->find(name).value_or(0);
    return std::isnan(number) ? 0 : number;
  };
  outcome.peak_bytes = static_cast<int64_t>(known("peak_bytes"));
  outcome.seconds = known("total_time");
  if (std::isnan(value)) {
    outcome.reason = validated ? "val_loss is NaN" : "train_loss is NaN";
    return;
  }
  outcome.values = values_of(folder, validated ? "val_loss" : "loss", value);
  outcome.state = search::TrialState::complete;
}

/// Returns the free memory of each of these cards; skips cards that are full or whose free memory
/// is unknown.
std::map<int64_t, DeviceSlot> slots_of(const std::vector<int64_t>& indices) {
  std::map<int64_t, DeviceSlot> slots;
  if (indices.empty()) return slots;
  const auto gpus = sweep::visible_gpus(std::getenv("CUDA_VISIBLE_DEVICES"));
  for (const int64_t index : indices) {
    const auto at = static_cast<size_t>(index);
    if (at < gpus.size() && sweep::has_capacity(gpus[at]))
      slots.emplace(index, gpus[at]);
    else
      log::warning("[fork.run] GPU " + std::to_string(index) +
                   " is skipped: its free memory is unknown or none");
  }
  return slots;
}

/// Reads a sweep and checks its values, so that a wrong one is an error before the first run, at
/// its place in the file.
sweep::SweepOptions read_checked(const fs::path& file, const std::vector<std::string>& overrides) {
  auto sweep = furcate::read_program_sweep(file, overrides);
  const auto check = [](const std::string& key, const Node& value) {
    Node one = Node::map();
    one.set(key, value);
    (void)read_fork_config(one);
  };
  for (const auto& parameter : sweep.parameters.parameters)
    for (const Node& value : parameter.values) check(parameter.name, value);
  for (const auto& [key, value] : sweep.set.values) check(key, value);
  sweep::check_not_all_excluded(sweep);
  return sweep;
}

class Runner {
 public:
  Runner(const fs::path& config, const std::function<std::vector<int64_t>()>& gpus)
      : file_(config, {}, read_checked),
        name_(file_.options().name),
        log_dir_(file_.options().log_dir),
        gpus_(slots_of(gpus())) {
    if (file_.options().origin.needs_gpu && gpus_.empty())
      throw ConfigError("fork.run",
                        "there is no GPU with memory left, and meta.allow_cpu is false; with true "
                        "the runs use the CPU");
  }

  int run() {
    std::signal(SIGCHLD, SIG_DFL);  // ends are waited for
    bound_spinning_of_children();
    const InterruptScope interrupts;
    const auto recorder = furcate::recorder_of(file_.options());
    const sweep::SweepHost host{
        .command = [this](const auto& settings, const auto& slot,
                          int64_t) { return command(settings, slot); },
        .slots = [this](const auto& resources) { return slots(resources); },
        .is_lost = [](const auto& slot) { return slot.is_gpu() && sweep::is_lost(slot); },
        .outcome = outcome_of_fork,
        .recorder = recorder.get(),
        .edited = [this] { return file_.changed(); },
        .interrupted = [] { return interrupt_requested(); },
        .out = &std::cout};
    const auto report = sweep::run_sweep(file_.options(), host);
    std::cout << name_ << ": " << report.complete << " complete, " << report.failed << " failed, "
              << report.waiting << " waiting; " << report.started << " started; "
              << (log_dir_ / "run_data.csv").string() << std::endl;
    if (report.interrupted) return 128 + interrupts.signal();
    return report.failed == 0 ? kSuccess : kFailed;
  }

 private:
  /// Returns a slot for each card, with one run, or as many as it takes for `jobs`.
  [[nodiscard]] std::vector<DeviceSlot> slots(const sweep::Resources& resources) const {
    std::vector<DeviceSlot> all;
    const auto cards = static_cast<int64_t>(gpus_.size());
    for (const auto& gpu : gpus_) {
      all.push_back(gpu.second);
      all.back().jobs = std::max<int64_t>(1, (resources.jobs + cards - 1) / cards);
    }
    return all;  // none: the host
  }

  [[nodiscard]] int64_t gpu_id(const DeviceSlot& slot) const {
    for (const auto& gpu : gpus_)
      if (slot.name == gpu.second.name) return gpu.first;
    return -1;
  }

  /// Writes the run's configuration. A run that was killed starts again from its beginning.
  std::vector<std::string> command(const std::vector<std::string>& settings,
                                   const DeviceSlot& slot) {
    Node all = file_.options().origin.configuration;
    const size_t own = settings.size() - 2;  // behind them: folder and name, see settings_of()
    for (size_t i = 0; i < own; ++i) {
      const size_t equals = settings[i].find('=');
      all.set(settings[i].substr(0, equals),
              config::parse_text(std::string_view(settings[i]).substr(equals + 1), "setting"));
    }
    const std::string& last = settings.back();
    const std::string name = config::parse_text(last.substr(last.find('=') + 1), "name").text;
    const fs::path folder = log_dir_ / name;
    all.set("log_dir", Node::string(folder.string()));
    all.set("gpu_id", Node::scalar(std::to_string(gpu_id(slot))));
    io::remove_all(folder / kRunData);
    io::write_atomically(folder / "config.json", sweep::config_json(all));
    int64_t id = 0;
    std::from_chars(name.data() + name_.size(), name.data() + name.size(), id);
    return {"/proc/self/exe", "--config",        (folder / "config.json").string(), "--name", name,
            "--id",           std::to_string(id)};
  }

  sweep::SweepFile file_;
  std::string name_;
  fs::path log_dir_;
  std::map<int64_t, DeviceSlot> gpus_;  // by index
};

}  // namespace

ForkArguments fork_arguments(const std::vector<std::string>& words) {
  ForkArguments given;
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word != "--config" && word != "--name" && word != "--id") continue;
    if (i + 1 == words.size()) throw ConfigError("fork.run", word + " is without its value");
    const std::string& value = words[++i];
    if (word == "--config") given.config = value;
    if (word == "--name") given.name = io::checked_name(value, "--name");
    if (word != "--id") continue;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), given.id);
    if (error != std::errc() || *end != '\0' || given.id < 0)
      throw ConfigError("fork.run", "--id", "must be a number from 0", "", printable(value));
  }
  const bool whole = given.name.empty() ? given.id < 0 : given.id >= 0 && !given.config.empty();
  if (!whole)
    throw ConfigError("fork.run", "a run has --config FILE --name NAME --id ID, all three");
  return given;
}

sweep::Outcome outcome_of_fork(const fs::path& folder, const launch::ChildEnd& end) {
  sweep::Outcome outcome{.reason = sweep::how_it_ended(end), .exit_code = end.exit_code};
  if (!outcome.reason.empty()) return outcome;
  if (!fs::exists(folder / kRunData)) {
    outcome.reason = "no " + std::string(kRunData);
    return outcome;
  }
  read_results(folder, outcome);
  return outcome;
}

int run_cells(const fs::path& config, const std::function<std::vector<int64_t>()>& gpus) {
  return Runner(config, gpus).run();
}

}  // namespace tare
