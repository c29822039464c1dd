#include "tare/sweep/coordinator.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <iterator>
#include <map>
#include <ostream>
#include <thread>
#include <unordered_set>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/folder_lock.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/memory/process.h"
#include "tare/sweep/child.h"
#include "tare/sweep/identity.h"
#include "tare/sweep/outcome.h"
#include "tare/sweep/queue.h"
#include "tare/sweep/run_data.h"

namespace tare::sweep {
namespace {

namespace fs = std::filesystem;

constexpr int kPollMs = 100;
constexpr std::chrono::seconds kWriteEvery{1};
constexpr std::chrono::milliseconds kShowEvery{200};

using Clock = std::chrono::steady_clock;

int64_t cores() { return std::max(1, memory::usable_processors()); }

class Coordinator {
 public:
  Coordinator(const SweepOptions& sweep, const Surroundings& around)
      : sweep_(sweep),
        around_(around),
        lock_(opened(sweep_)),
        store_(sweep_.log_dir / (sweep_.name + ".sqlite"), sweep_),
        room_(host_room(sweep_.resources)) {}

  SweepReport run() {
    take_over();
    fill(wanted(sweep_), around_.retry_failed);
    load();
    while (true) {
      if (!report_.interrupted && interrupted()) stop();
      if (!report_.interrupted) follow_edits();
      if (!report_.interrupted) start_what_fits();
      if (running_.empty()) break;
      show();
      wait_for_ends();
    }
    write_data();
    count();
    return report_;
  }

 private:
  struct Running {
    Trial trial;
    Child child;
    int64_t bytes = 0;
    Clock::time_point started = Clock::now();
    Reports reports{};
  };
  /// What a sweep's options ask for.
  struct Wanted {
    std::vector<Cell> cells{};
    std::vector<std::string> identities{};
  };

  /// The folder, which is of one sweep.
  static fs::path opened(const SweepOptions& sweep) {
    io::make_directories(sweep.log_dir);
    for (const auto& entry : fs::directory_iterator(sweep.log_dir)) {
      const fs::path& file = entry.path();
      if (file.extension() == ".sqlite" && file.stem() != sweep.name)
        throw ConfigError("sweep", "log_dir",
                          "holds the sweep '" + printable(file.stem().string()) + "'",
                          "a folder of its own", printable(sweep.log_dir.string()));
    }
    return sweep.log_dir;
  }

  [[nodiscard]] fs::path folder_of(const Trial& trial) const {
    return sweep_.log_dir / trial.run_name;
  }

  /// What a coordinator that was killed has left: its children end with it.
  void take_over() {
    for (const Trial& trial : store_.trials()) {
      if (trial.state != TrialState::running) continue;
      while (is_alive(trial.child) && !interrupted()) {
        kill(static_cast<pid_t>(-trial.child.pid), SIGKILL);
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      Outcome outcome = outcome_of(folder_of(trial), {}, sweep_.metric.name);
      if (outcome.state == TrialState::complete) {
        store_.finish(trial, outcome);
      } else {
        store_.put_back(trial);
      }
    }
  }

  [[nodiscard]] static Wanted wanted(const SweepOptions& sweep) {
    Wanted all{.cells = grid(sweep)};
    if (sweep.trials > 0 && all.cells.size() > static_cast<size_t>(sweep.trials))
      all.cells.resize(static_cast<size_t>(sweep.trials));
    const Identity identity(sweep);
    for (const Cell& cell : all.cells) all.identities.push_back(identity.of(cell));
    return all;
  }

  void fill(const Wanted& wanted, bool failed_too) {
    store_.wait_for(wanted.cells, wanted.identities, failed_too);
    wanted_ = {wanted.identities.begin(), wanted.identities.end()};
  }

  void load() {
    std::vector<Trial> waiting;
    ended_.clear();
    for (Trial& trial : store_.trials()) {
      note_peak(trial.peak_bytes);
      if (trial.reason == kDropped || trial.state == TrialState::running) continue;
      (trial.state == TrialState::waiting ? waiting : ended_).push_back(std::move(trial));
    }
    queue_.become(std::move(waiting));
  }

  /// All of an edit or nothing.
  void follow_edits() {
    if (!around_.edited) return;
    auto edited = around_.edited();
    if (!edited) return;
    try {
      if (const char* key = fixed_key(*edited))
        throw ConfigError("sweep", key, "cannot change while the sweep runs",
                          "stop it, and sweep in another log_dir", {});
      const Wanted now = wanted(*edited);
      const SweepOptions before = std::exchange(sweep_, std::move(*edited));
      try {
        fill(now, false);
      } catch (...) {
        sweep_ = before;
        throw;
      }
      room_ = host_room(sweep_.resources);
      load();
      log::info("[sweep] the edited sweep is in force: " + std::to_string(queue_.size()) +
                " runs wait");
    } catch (const ConfigError& error) {
      log::warning(std::string(error.what()) + "; the sweep goes on as before");
    }
  }

  [[nodiscard]] const char* fixed_key(const SweepOptions& edited) const {
    if (edited.name != sweep_.name) return "name";
    if (edited.recipe != sweep_.recipe) return "recipe";
    if (edited.log_dir != sweep_.log_dir) return "log_dir";
    if (edited.method != sweep_.method) return "method";
    const bool same_metric =
        edited.metric.name == sweep_.metric.name && edited.metric.goal == sweep_.metric.goal;
    return same_metric ? nullptr : "metric";
  }

  void note_peak(int64_t bytes) { highest_peak_ = std::max(highest_peak_, bytes); }

  [[nodiscard]] bool interrupted() const { return around_.interrupted && around_.interrupted(); }

  /// Bytes that a waiting run will take; 0: nothing is known.
  [[nodiscard]] int64_t bytes_of(const Trial& trial) const {
    if (trial.asked_bytes > 0) return trial.asked_bytes;
    if (sweep_.resources.memory.bytes || !around_.predict) return reservation(sweep_, {});
    return reservation(sweep_, around_.predict(settings(trial)));
  }

  [[nodiscard]] std::vector<std::string> settings(const Trial& trial) const {
    return settings_of(sweep_, trial.cell, trial.run_name);
  }

  void start_what_fits() {
    const auto& limits = sweep_.on_failure;
    while (limits.max_failed == 0 || failed_ < limits.max_failed) {
      if (static_cast<int64_t>(running_.size()) >= room_.jobs || interrupted()) return;
      auto next = next_run();
      if (!next || !is_as_asked(next->trial)) return;
      start(std::move(next->trial), next->bytes);
    }
  }

  std::optional<Queue::Start> next_run() {
    std::vector<Placed> placed;
    for (const auto& run : running_) placed.push_back({0, run.bytes});
    const int64_t unknown =
        highest_peak_ > 0 ? reservation(sweep_, highest_peak_) : room_.total_bytes;
    return queue_.next(
        {room_}, placed, unknown, [this](const Trial& trial) { return bytes_of(trial); },
        [this](const Trial& trial, const std::string& why) { refuse(trial, why); });
  }

  void refuse(const Trial& trial, const std::string& why) {
    const Outcome outcome{.reason = why};
    store_.finish(trial, outcome);
    say(trial, outcome);
    ended_.push_back(ended(trial, outcome));
    ++failed_;
  }

  /// Children read the recipe themselves, and it may have been edited.
  bool is_as_asked(const Trial& trial) {
    if (Identity(sweep_).of(trial.cell) == trial.identity) return true;
    log::error("the recipe has changed: no other run starts; run the sweep again");
    queue_.clear();
    return false;
  }

  void start(Trial trial, int64_t bytes) {
    const fs::path folder = folder_of(trial);
    io::make_directories(folder);
    const ChildStart how{
        .command = around_.command(settings(trial), bytes),
        .out = folder / (trial.run_name + ".log"),
        .err = folder / (trial.run_name + ".err"),
        .environment = {{"OMP_NUM_THREADS", std::to_string(threads_of_run(room_))}}};
    Child child = around_.start ? around_.start(how) : Child(how);
    store_.start(trial, child.mark(), bytes);
    running_.push_back({std::move(trial), std::move(child), bytes});
    ++report_.started;
  }

  void stop() {
    report_.interrupted = true;
    for (const auto& run : running_) run.child.send(SIGTERM);
  }

  void show() {
    if (!around_.progress || Clock::now() - shown_ < kShowEvery) return;
    shown_ = Clock::now();
    SweepProgress now{.waiting = static_cast<int64_t>(queue_.size())};
    const bool most = sweep_.metric.goal == "maximize";
    for (const Trial& trial : ended_) {
      if (trial.state == TrialState::failed) ++now.failed;
      if (trial.state != TrialState::complete) continue;
      ++now.complete;
      if (now.best.empty() || (most ? trial.value > now.best_value : trial.value < now.best_value))
        now.best = trial.run_name, now.best_value = trial.value;
    }
    for (auto& run : running_) {
      const auto& values = run.reports.read(folder_of(run.trial), sweep_.metric.name);
      const std::chrono::duration<double> time = Clock::now() - run.started;
      now.running.push_back({.name = run.trial.run_name,
                             .epochs = static_cast<int64_t>(values.size()),
                             .bytes = run.bytes,
                             .seconds = time.count()});
      if (!values.empty()) now.running.back().value = values.back();
    }
    around_.progress(now);
  }

  void wait_for_ends() {
    std::vector<pollfd> ends;
    for (const auto& run : running_) ends.push_back({run.child.descriptor(), POLLIN, 0});
    poll(ends.data(), ends.size(), kPollMs);
    for (size_t i = ends.size(); i-- > 0;) {
      if (ends[i].revents == 0) continue;
      Running run = std::move(running_[i]);
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
      end(run);
    }
  }

  void end(Running& run) {
    const ChildEnd how = run.child.wait();
    const Outcome outcome = outcome_of(folder_of(run.trial), how, sweep_.metric.name);
    if (report_.interrupted && outcome.state != TrialState::complete) {
      store_.put_back(run.trial);
      return;
    }
    note_peak(outcome.peak_bytes);
    say(run.trial, outcome);
    if (const auto asked = again(run, outcome)) {
      queue_.add(store_.finish_and_retry(run.trial, outcome, *asked));
    } else {
      store_.finish(run.trial, outcome);
      if (outcome.state != TrialState::complete) ++failed_;
    }
    ended_.push_back(ended(std::move(run.trial), outcome));
    if (Clock::now() - written_ >= kWriteEvery) write_data();
  }

  static Trial ended(Trial trial, const Outcome& outcome) {
    trial.state = outcome.state;
    trial.reason = outcome.reason;
    trial.peak_bytes = outcome.peak_bytes;
    trial.seconds = outcome.seconds;
    if (trial.state == TrialState::complete) trial.value = outcome.values.back();
    return trial;
  }

  void write_data() {
    write_run_data(sweep_.log_dir / "run_data.csv", sweep_.metric.name, ended_);
    written_ = Clock::now();
  }

  /// What a run that was out of memory asks for when it is tried again: half as much more, at last
  /// all; and one that was killed, the same. Unset: others would fail again.
  [[nodiscard]] std::optional<int64_t> again(const Running& run, const Outcome& outcome) const {
    const bool oom = outcome.exit_code == kOutOfMemoryExit;
    const bool killed = outcome.reason.starts_with("signal");
    if (run.trial.attempt >= sweep_.on_failure.max_retries || !(oom || killed)) return std::nullopt;
    if (killed) return run.trial.asked_bytes;
    if (run.bytes >= room_.total_bytes) return std::nullopt;
    const int64_t more = std::max(run.bytes + run.bytes / 2, outcome.peak_bytes * 6 / 5);
    return std::min(more, room_.total_bytes);
  }

  void say(const Trial& trial, const Outcome& outcome) const {
    if (!around_.out) return;
    *around_.out << trial.run_name << "  ";
    if (outcome.state == TrialState::complete) {
      *around_.out << sweep_.metric.name << ' ' << outcome.values.back() << ", peak "
                   << format_bytes(outcome.peak_bytes) << ", " << format_seconds(outcome.seconds);
    } else {
      *around_.out << "failed: " << printable(outcome.reason);
      const fs::path errors = folder_of(trial) / (trial.run_name + ".err");
      if (fs::exists(errors)) *around_.out << "; see " << errors.string();
    }
    *around_.out << std::endl;
  }

  void count() {
    std::map<std::string, TrialState> latest;
    for (const Trial& trial : store_.trials())
      if (wanted_.contains(trial.identity)) latest[trial.identity] = trial.state;
    for (const auto& [identity, state] : latest) {
      if (state == TrialState::complete) ++report_.complete;
      if (state == TrialState::failed) ++report_.failed;
      if (state == TrialState::waiting) ++report_.waiting;
    }
  }

  SweepOptions sweep_;
  const Surroundings& around_;
  io::FolderLock lock_;
  Store store_;
  DeviceRoom room_;
  Queue queue_;
  std::vector<Running> running_;
  std::unordered_set<std::string> wanted_;  // identities
  std::vector<Trial> ended_;                // by now, over all calls
  Clock::time_point written_{}, shown_{};
  int64_t highest_peak_ = 0, failed_ = 0;
  SweepReport report_;
};

}  // namespace

std::vector<std::string> settings_of(const SweepOptions& sweep, const Cell& cell,
                                     const std::string& run_name) {
  std::vector<std::string> all = override_texts(sweep.set);
  std::ranges::copy(override_texts(cell), std::back_inserter(all));
  all.push_back(override_text("folder", config::Node::string(sweep.log_dir.string())));
  all.push_back(override_text("name", config::Node::string(run_name)));
  return all;
}

DeviceRoom host_room(const Resources& resources) {
  const int64_t free = memory::machine_memory().available_bytes;
  return {.name = "host",
          .total_bytes = resources.total.bytes.value_or(free),
          .jobs = resources.jobs > 0 ? resources.jobs : cores()};
}

int64_t threads_of_run(const DeviceRoom& room) { return std::max<int64_t>(1, cores() / room.jobs); }

int64_t reservation(const SweepOptions& sweep, std::optional<int64_t> predicted) {
  constexpr int64_t kLeast = int64_t{16} << 20;
  if (sweep.resources.memory.bytes) return *sweep.resources.memory.bytes;
  return predicted ? std::max(kLeast, *predicted + *predicted / 10) : 0;
}

SweepReport run_sweep(const SweepOptions& sweep, const Surroundings& around) {
  return Coordinator(sweep, around).run();
}

}  // namespace tare::sweep
