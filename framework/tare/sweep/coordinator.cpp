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
#include "tare/sweep/run_data.h"

namespace tare::sweep {
namespace {

namespace fs = std::filesystem;

constexpr int kPollMs = 100;
constexpr std::chrono::seconds kWriteEvery{1};

using Clock = std::chrono::steady_clock;

int64_t cores() { return std::max(1, memory::usable_processors()); }

class Coordinator {
 public:
  Coordinator(const SweepOptions& sweep, const Surroundings& around)
      : sweep_(sweep),
        around_(around),
        lock_(opened(sweep)),
        store_(sweep.log_dir / (sweep.name + ".sqlite"), sweep),
        room_(host_room(sweep.resources)) {}

  SweepReport run() {
    take_over();
    fill();
    load();
    while (true) {
      if (!report_.interrupted && interrupted()) stop();
      if (!report_.interrupted) start_what_fits();
      if (running_.empty()) break;
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
  };
  struct Queued {
    Trial trial;
    std::optional<int64_t> bytes{};  ///< unset: not asked yet; 0: unknown
    int64_t passed_over = 0;
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

  void fill() {
    auto cells = grid(sweep_);
    if (sweep_.trials > 0 && cells.size() > static_cast<size_t>(sweep_.trials))
      cells.resize(static_cast<size_t>(sweep_.trials));
    const Identity identity(sweep_);
    std::vector<std::string> identities;
    for (const Cell& cell : cells) identities.push_back(identity.of(cell));
    store_.wait_for(cells, identities, around_.retry_failed);
    wanted_.insert(identities.begin(), identities.end());
  }

  void load() {
    for (Trial& trial : store_.trials()) {
      note_peak(trial.peak_bytes);
      if (trial.reason == kDropped) continue;
      if (trial.state == TrialState::waiting)
        queue_.push_back({std::move(trial)});
      else
        ended_.push_back(std::move(trial));
    }
  }

  void note_peak(int64_t bytes) { highest_peak_ = std::max(highest_peak_, bytes); }

  [[nodiscard]] bool interrupted() const { return around_.interrupted && around_.interrupted(); }

  /// Bytes of a waiting run; all of the room where nothing is known of it. Throws Error for
  /// settings that the recipe does not take.
  int64_t bytes_of(Queued& queued) {
    if (!queued.bytes) {
      queued.bytes = queued.trial.asked_bytes;
      if (*queued.bytes == 0 && !sweep_.resources.memory.bytes && around_.predict)
        queued.bytes = reservation(sweep_, around_.predict(settings(queued.trial)));
      else if (*queued.bytes == 0)
        queued.bytes = reservation(sweep_, {});
    }
    if (*queued.bytes > 0) return *queued.bytes;
    return highest_peak_ > 0 ? reservation(sweep_, highest_peak_) : room_.total_bytes;
  }

  [[nodiscard]] std::vector<std::string> settings(const Trial& trial) const {
    return settings_of(sweep_, trial.cell, trial.run_name);
  }

  void start_what_fits() {
    const auto& limits = sweep_.on_failure;
    while (limits.max_failed == 0 || failed_ < limits.max_failed) {
      if (static_cast<int64_t>(running_.size()) >= room_.jobs || interrupted()) return;
      const auto choice = next();
      if (!choice) return;
      Trial trial = std::move(queue_[choice->waiting].trial);
      queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(choice->waiting));
      if (!is_as_asked(trial)) return;
      start(std::move(trial), choice->bytes);
    }
  }

  /// Asks for the bytes of no more waiting runs than it takes to find one that fits.
  std::optional<Choice> next() {
    std::vector<Placed> placed;
    for (const auto& run : running_) placed.push_back({0, run.bytes});
    const auto far = static_cast<size_t>(room_.jobs + kPatience);
    std::vector<Waiting> waiting;
    while (waiting.size() < std::min(queue_.size(), far)) {
      Queued& queued = queue_[waiting.size()];
      try {
        waiting.push_back({bytes_of(queued), queued.passed_over});
      } catch (const Error& error) {
        refuse(waiting.size(), error.what());
        continue;
      }
      const auto choice = next_start({room_}, placed, waiting);
      if (choice) {
        for (size_t i = 0; i < choice->waiting; ++i) ++queue_[i].passed_over;
        return choice;
      }
    }
    return std::nullopt;
  }

  void refuse(size_t index, const std::string& why) {
    Trial trial = std::move(queue_[index].trial);
    queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(index));
    const Outcome outcome{.reason = why};
    store_.finish(trial, outcome);
    say(trial, outcome);
    ended_.push_back(ended(std::move(trial), outcome));
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
    Child child({.command = around_.command(settings(trial), bytes),
                 .out = folder / (trial.run_name + ".log"),
                 .err = folder / (trial.run_name + ".err"),
                 .environment = {{"OMP_NUM_THREADS", std::to_string(threads_of_run(room_))}}});
    store_.start(trial, child.mark(), bytes);
    running_.push_back({std::move(trial), std::move(child), bytes});
    ++report_.started;
  }

  void stop() {
    report_.interrupted = true;
    for (const auto& run : running_) run.child.send(SIGTERM);
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
      queue_.push_back({store_.finish_and_retry(run.trial, outcome, *asked)});
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

  const SweepOptions& sweep_;
  const Surroundings& around_;
  io::FolderLock lock_;
  Store store_;
  DeviceRoom room_;
  std::vector<Queued> queue_;
  std::vector<Running> running_;
  std::unordered_set<std::string> wanted_;  // identities
  std::vector<Trial> ended_;                // by now, over all calls
  Clock::time_point written_{};
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
