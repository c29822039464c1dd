// Starts, watches and ends the runs of a sweep.
#include "tare/sweep/coordinator.h"

#include <poll.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <iterator>
#include <map>
#include <memory>
#include <unordered_set>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/runtime/exit_code.h"
#include "tare/sweep/finished_runs.h"
#include "tare/sweep/folder.h"
#include "tare/sweep/identity.h"
#include "tare/sweep/outcome.h"
#include "tare/sweep/progress.h"
#include "tare/sweep/queue.h"
#include "tare/sweep/resources.h"
#include "tare/sweep/run_mark.h"
#include "tare/sweep/run_name.h"
#include "tare/sweep/tuner.h"
#include "tare/sweep/wanted_runs.h"

namespace tare::sweep {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kPollMs = 100;
constexpr std::chrono::milliseconds kShowEvery{200};

class Coordinator {
 public:
  Coordinator(const SweepOptions& sweep, const SweepHost& host)
      : sweep_(sweep),
        host_(host),
        lock_(lock_folder(sweep_)),
        store_file_(checked_store_file(sweep_)),
        executor_(host_.executor ? *host_.executor : local_),
        store_(store_file_, sweep_),
        tuner_(sweep_, store_),
        slots_(host_.slots, sweep_.resources),
        estimator_(sweep_, slots_, host_.predict, host_.signature) {}

  /// Throws an error that names the folder or the store if one of them is gone.
  SweepReport run() {
    try {
      return run_all();
    } catch (const IoError&) {
      lock_->check_still_there();
      write_table();
      store_.check_still_there();
      throw;
    }
  }

 private:
  /// Writes the table, from which a store that is gone can be made again.
  void write_table() {
    try {
      finished_.write();
    } catch (const IoError& error) {  // another error ends the sweep
      log::warning(error.what());
    }
  }

  SweepReport run_all() {
    take_over();
    fill(wanted_runs(sweep_, store_.trials()), host_.retry_failed);
    load();
    while (true) {
      check_still_there();
      if (!report_.interrupted && interrupted()) stop();
      if (!report_.interrupted) apply_edits();
      const bool waits = start_what_fits();
      if (running_.empty() && !waits) break;
      watch();
      show();
      wait_for_ends();
    }
    if (!report_.interrupted && may_start_more()) end_paused();
    while (finished_.write_more()) {
    }
    finished_.write();
    check_still_there();
    static_cast<RunCounts&>(report_) = count_runs(store_.trials(), wanted_);
    return report_;
  }

  [[nodiscard]] fs::path folder_of(const Trial& trial) const {
    return sweep_.log_dir / trial.run_name;
  }

  /// Returns the file with what a run prints, without its errors.
  [[nodiscard]] fs::path printed_by(const Trial& trial) const {
    return folder_of(trial) / (log_stem(sweep_, trial.run_name) + ".log");
  }

  /// Throws if the folder or the store was deleted or replaced: results would be lost unnoticed.
  void check_still_there() const {
    lock_->check_still_there();
    store_.check_still_there();
  }

  [[nodiscard]] Outcome outcome_of_run(const Trial& trial, const launch::ChildEnd& end) const {
    if (!is_folder_of(folder_of(trial), trial.identity)) {
      Outcome lost{.reason = how_it_ended(end), .exit_code = end.exit_code};
      if (lost.reason.empty()) lost.reason = "its folder is not marked as that of this run";
      return lost;
    }
    return host_.outcome ? host_.outcome(folder_of(trial), end)
                         : outcome_of(folder_of(trial), end, sweep_.metric.name);
  }

  [[nodiscard]] const std::vector<double>& reports_of(ActiveRun& run) const {
    return host_.outcome ? run.reports.values()
                         : run.reports.read(folder_of(run.trial), sweep_.metric.name);
  }

  /// Takes over from a coordinator that was killed: its children end with it, others are followed.
  void take_over() {
    const auto trials = store_.trials();
    std::vector<launch::ProcessId> ids;
    for (const Trial& trial : trials)
      if (trial.state == search::TrialState::running) ids.push_back(trial.child);
    auto recovered = executor_.recover(ids);
    for (const Trial& trial : trials) {
      const bool was_running = trial.state == search::TrialState::running;
      const bool waits = trial.state == search::TrialState::waiting;
      const auto found = recovered.find(trial.run_name);
      const bool is_running = found != recovered.end() && !found->second->has_ended();
      const bool may_be_done = was_running || (waits && found != recovered.end());
      const Outcome outcome = may_be_done ? outcome_of_run(trial, {}) : Outcome{};
      if (is_running || (was_running && found != recovered.end())) {
        follow(trial, std::move(found->second), {0}, 0);
        recovered.erase(found);
      } else if (outcome.state == search::TrialState::complete) {
        store_.finish(trial, outcome);
        if (host_.recorder)
          host_.recorder->ended(trial.run_name, printed_by(trial), "complete", 0, 1);
      } else if (was_running) {
        store_.put_back(trial);
      }
    }
    for (const auto& [name, process] : recovered)
      if (!process->has_ended()) process->send(SIGTERM);
  }

  void fill(const WantedRuns& wanted, bool failed_too) {
    store_.wait_for(wanted.cells, wanted.identities, failed_too);
    wanted_ = {wanted.identities.begin(), wanted.identities.end()};
    recipe_ = wanted.recipe;
  }

  void load() {
    std::vector<Trial> waiting, ended, all = store_.trials();
    mark_earlier(sweep_, all);
    paused_.clear();
    for (Trial& trial : all) {
      if (trial.state != search::TrialState::running) estimator_.add(trial);
      const bool counts =
          wanted_.contains(trial.identity) || trial.state == search::TrialState::running;
      if (counts && trial.reason != kDropped)
        tuner_.add(trial);
      else
        tuner_.remove(trial.number);
      if (trial.reason == kDropped || trial.state == search::TrialState::running) continue;
      if (trial.state != search::TrialState::waiting)
        ended.push_back(std::move(trial));
      else if (tuner_.is_paused(trial))
        paused_.emplace(trial.number, std::move(trial));
      else
        waiting.push_back(std::move(trial));
    }
    warn_of_earlier(ended);
    queue_.replace(std::move(waiting));
    finished_.replace(std::move(ended));
  }

  void warn_of_earlier(const std::vector<Trial>& ended) const {
    const auto count = std::ranges::count(ended, true, &Trial::is_earlier);
    if (count == 0) return;
    log::warning(
        std::to_string(count) + (count == 1 ? " run of " : " runs of ") +
        printable(sweep_.log_dir.string()) + (count == 1 ? " is" : " are") +
        " of another recipe or of other settings in `set`: status and report mark such runs, "
        "and compare them with no other; another log_dir keeps them apart");
  }

  /// Applies all of an edit or nothing.
  void apply_edits() {
    if (!host_.edited) return;
    auto edited = host_.edited();
    if (!edited) return;
    try {
      if (const char* key = fixed_key(sweep_, *edited))
        throw ConfigError("sweep", key, "cannot change while the sweep runs",
                          "stop it, and sweep in another log_dir", {});
      const WantedRuns now = wanted_runs(*edited, store_.trials());
      const SweepOptions before = std::exchange(sweep_, std::move(*edited));
      try {
        fill(now, false);
      } catch (...) {
        sweep_ = before;
        throw;
      }
      slots_.update(sweep_.resources);
      tuner_.apply_edit();
      load();
      log::info("[sweep] the edited sweep is in force: " + std::to_string(queue_.size()) +
                " runs wait");
    } catch (const ConfigError& error) {
      log::warning(std::string(error.what()) + "; the sweep continues as before");
    }
  }

  [[nodiscard]] bool interrupted() const { return host_.interrupted && host_.interrupted(); }

  [[nodiscard]] bool may_start_more() const {
    const int64_t limit = sweep_.on_failure.max_failed;
    return !recipe_changed_ && (limit == 0 || failed_ < limit);
  }

  /// Returns whether something could start for which there is no place yet.
  bool start_what_fits() {
    while (true) {
      const int64_t on = std::ssize(running_);
      const bool may_start = !report_.interrupted && may_start_more();
      const int64_t startable =
          may_start ? std::ssize(queue_) + drawable() + promotable() : int64_t{0};
      const bool has_capacity = executor_.has_capacity(std::min(on + startable, slots_.jobs()));
      if (startable == 0) return false;
      if (!has_capacity || interrupted()) return true;
      if (on >= slots_.jobs()) return false;
      refill();
      auto next = next_run();
      if (!next || !recipe_is_as_asked()) return false;
      start(std::move(*next));
    }
  }

  /// Runs that may still be drawn, as far as is known.
  [[nodiscard]] int64_t drawable() const {
    if (!tuner_.draws()) return 0;
    return sweep_.trials > 0 ? std::max<int64_t>(0, sweep_.trials - std::ssize(wanted_))
                             : slots_.jobs();
  }

  [[nodiscard]] int64_t promotable() const {
    return !paused_.empty() && tuner_.promotion() ? 1 : 0;
  }

  /// Adds a run that may continue, or a new one where they are drawn.
  void refill() {
    if (const auto number = tuner_.promotion(); number && paused_.contains(*number)) {
      queue_.add_first(std::move(paused_.extract(*number).mapped()));
      return;
    }
    if (drawable() == 0 || !queue_.empty()) return;
    const auto cell = tuner_.draw(store_.next_number());
    if (!cell) return;
    const std::string identity = Identity(sweep_).of(*cell);
    if (!wanted_.insert(identity).second) return;
    Trial trial = store_.add(*cell, identity);
    tuner_.add(trial);
    queue_.add(std::move(trial));
  }

  std::optional<Queue::Start> next_run() {
    std::vector<Placed> placed;
    for (const auto& run : running_) placed.push_back({run.devices, run.bytes});
    return queue_.next(
        slots_.all(), placed, slots_.of_run(),
        [this](const Trial& trial) { return estimator_.measured(trial); },
        [this](const Trial& trial) { return estimator_.planned(trial); },
        [this](const Trial& trial, const std::string& why) { refuse(trial, why); });
  }

  void refuse(const Trial& trial, const std::string& why) {
    const Outcome outcome{.reason = why};
    store_.finish(trial, outcome);
    tuner_.add(finished_.add(trial, outcome));
    ++failed_;
  }

  /// Children read the recipe themselves, and it may have been edited.
  bool recipe_is_as_asked() {
    if (Identity(sweep_).of({}) == recipe_) return true;
    log::error("the recipe has changed: no other run starts; run the sweep again");
    recipe_changed_ = true;
    return false;
  }

  void start(Queue::Start next) {
    Trial& trial = next.trial;
    const fs::path folder = folder_of(trial);
    try {
      claim_folder(folder, sweep_, trial);
    } catch (const StateError& error) {
      refuse(trial, error.what());
      return;
    }
    trial.ranks = sweep_.resources.ranks;
    trial.devices.clear();
    int64_t context = 0;
    std::string cards;
    for (const size_t device : next.devices) {
      const launch::DeviceSlot& slot = slots_.all()[device];
      context = std::max(context, slot.context_bytes);
      if (slot.is_gpu()) cards += (cards.empty() ? "" : ",") + slot.name;
      if (trial.ranks > 1) trial.devices.push_back(slot.short_name());
    }
    launch::ChildStart how{
        .name = trial.run_name,
        .command = host_.command(settings_of(sweep_, trial.cell, trial.run_name),
                                 slots_.all()[next.devices.front()],
                                 (next.bytes - context) / slots_.ranks()),
        .out = printed_by(trial),
        .err = folder / (log_stem(sweep_, trial.run_name) + ".err"),
        .environment = {
            {"OMP_NUM_THREADS", std::to_string(threads_of_each(slots_.jobs() * trial.ranks))}}};
    if (!cards.empty()) how.environment.emplace_back("CUDA_VISIBLE_DEVICES", cards);
    if (host_.environment)
      for (auto& variable : host_.environment()) how.environment.push_back(std::move(variable));
    if (host_.recorder) host_.recorder->starts(trial.run_name, how.out);
    auto process = executor_.start(how);
    follow(std::move(trial), std::move(process), std::move(next.devices), next.bytes);
    ++report_.started;
  }

  void follow(Trial trial, std::unique_ptr<launch::Process> process, std::vector<size_t> devices,
              int64_t bytes) {
    trial.started = store_.start(trial, process->id(), bytes * std::ssize(devices));
    trial.state = search::TrialState::running;
    const launch::DeviceSlot& slot = slots_.all()[devices.front()];
    if (!slot.is_remote())
      trial.gpu_id = slot.is_gpu() ? static_cast<int64_t>(devices.front()) : -1;
    tuner_.add(trial);
    const int64_t epochs =
        host_.epochs ? host_.epochs(settings_of(sweep_, trial.cell, trial.run_name)) : 0;
    running_.push_back({std::move(trial), std::move(process), std::move(devices), bytes, epochs});
  }

  void stop() {
    report_.interrupted = true;
    for (const auto& run : running_)  // others have been asked; a second signal would end them
      if (run.decision == search::PruneDecision::proceed) run.process->send(SIGTERM);
  }

  /// Asks runs to save and end that should not continue.
  void watch() {
    if (Clock::now() - watched_ < executor_.poll_interval()) return;
    watched_ = Clock::now();
    if (host_.recorder) host_.recorder->poll();
    for (auto& run : running_) {
      const auto& values = reports_of(run);
      if (run.decision != search::PruneDecision::proceed) continue;  // it is saving
      const auto decision = tuner_.report(run.trial, values);
      const bool at_its_end = std::ssize(values) == run.epochs;  // and soon complete
      if (at_its_end || decision == search::PruneDecision::proceed) continue;
      run.decision = decision;
      run.process->send(SIGTERM);
    }
  }

  void show() {
    if (!host_.progress || Clock::now() - shown_ < kShowEvery) return;
    shown_ = Clock::now();
    SweepProgress now = finished_.progress();
    now.waiting = std::ssize(queue_) + std::ssize(paused_);
    for (const auto& run : running_) now.running.push_back(run.now());
    host_.progress(now);
  }

  void wait_for_ends() {
    std::vector<pollfd> ends;
    for (const auto& run : running_) ends.push_back({run.process->descriptor(), POLLIN, 0});
    if (poll(ends.data(), ends.size(), 0) == 0 && !finished_.write_more())
      poll(ends.data(), ends.size(), kPollMs);
    for (size_t i = ends.size(); i-- > 0;) {
      if (!running_[i].process->has_ended()) continue;
      check_still_there();
      ActiveRun run = std::move(running_[i]);
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
      end(run);
    }
  }

  void end(ActiveRun& run) {
    const launch::ChildEnd how = run.process->wait();
    Outcome outcome = outcome_of_run(run.trial, how);
    // It may have been done before, also where its executor has lost it.
    if (outcome.reason.starts_with("signal"))
      if (Outcome done = outcome_of_run(run.trial, {}); done.state == search::TrialState::complete)
        outcome = std::move(done);
    const bool complete = outcome.state == search::TrialState::complete;
    const std::string name = run.trial.run_name, reason = complete ? "complete" : outcome.reason;
    const fs::path printed = printed_by(run.trial);
    settle(run, how, std::move(outcome));
    if (host_.recorder)
      host_.recorder->ended(
          name, printed, reason,
          std::ssize(queue_) + std::ssize(paused_) + std::ssize(running_) + stopped_,
          std::ssize(running_) + 1);
  }

  /// Ends a run, or lets it wait until it continues.
  void settle(ActiveRun& run, const launch::ChildEnd& how, Outcome outcome) {
    const bool complete = outcome.state == search::TrialState::complete;
    const auto& values = complete ? outcome.values : reports_of(run);
    if (complete) {
      (void)tuner_.report(run.trial, values);
    } else if (how.saved && !report_.interrupted &&
               run.decision == search::PruneDecision::proceed) {
      put_back(run);
      queue_.add_first(std::move(run.trial));
      return;
    } else if (report_.interrupted || run.ended_because_of(search::PruneDecision::pause, how)) {
      put_back(run);
      return;
    } else if (run.ended_because_of(search::PruneDecision::prune, how)) {
      outcome.state = search::TrialState::pruned;
      outcome.reason.clear();
      outcome.values = values;
    }
    if (outcome.state == search::TrialState::failed) {
      require_disk_space(sweep_.log_dir);  // else it continues later
      const bool lost = is_any_lost(run.devices);
      if (lost && how.exit_code == kBadInput) {  // no card was there at its start
        log::warning("[sweep] " + run.trial.run_name + " waits for another card");
        put_back(run);
        queue_.add_first(std::move(run.trial));
        return;
      }
    }
    finish(run, outcome);
  }

  /// Whether one of the slots is gone, see is_lost(), which is asked for each.
  bool is_any_lost(const std::vector<size_t>& slots) {
    return std::ranges::count_if(slots, [this](size_t slot) { return is_lost(slot); }) > 0;
  }

  /// Whether a slot is gone, in which then no other run starts.
  bool is_lost(size_t slot) {
    const launch::DeviceSlot& device = slots_.all()[slot];
    if (device.jobs == 0) return true;
    if (!host_.is_lost || !host_.is_lost(device)) return false;
    slots_.retire(slot, sweep_.resources);
    log::warning("[sweep] " + printable(device.full_name()) +
                 " is there no longer, so no more runs are placed on it; look at `nvidia-smi` and "
                 "`dmesg`" +
                 (slots_.jobs() > 0
                      ? std::string()
                      : std::string(sweep_.resources.ranks > 1 ? ". Too few are left for a run"
                                                               : ". No other is left") +
                            ": `tare sweep run` continues the runs that wait"));
    return true;
  }

  void put_back(ActiveRun& run) {
    store_.put_back(run.trial);
    run.trial.state = search::TrialState::waiting;
    tuner_.add(run.trial);
    if (run.decision == search::PruneDecision::pause)
      paused_.emplace(run.trial.number, std::move(run.trial));
    else if (report_.interrupted)
      ++stopped_;
  }

  void finish(const ActiveRun& run, const Outcome& outcome) {
    if (const auto asked = asked_again(sweep_.on_failure, run.trial, run.bytes, slots_, outcome)) {
      Trial trial = store_.finish_and_retry(run.trial, outcome, *asked);
      tuner_.add(trial);
      queue_.add(std::move(trial));
    } else {
      store_.finish(run.trial, outcome);
      if (outcome.state == search::TrialState::failed) ++failed_;
    }
    const Trial& ended = finished_.add(run.trial, outcome);
    tuner_.add(ended);
    estimator_.add(ended);
  }

  /// Ends paused runs, which nothing can promote any more.
  void end_paused() {
    for (const auto& [number, trial] : paused_) {
      Outcome outcome = outcome_of_run(trial, {});
      outcome.state = search::TrialState::pruned;
      outcome.reason.clear();
      outcome.values = Reports().read(folder_of(trial), sweep_.metric.name);
      store_.finish(trial, outcome);
      finished_.add(trial, outcome);
    }
    paused_.clear();
  }

  SweepOptions sweep_;
  const SweepHost& host_;
  std::unique_ptr<io::FolderLock> lock_;
  fs::path store_file_;
  launch::LocalExecutor local_;
  launch::Executor& executor_;
  Store store_;
  Tuner tuner_;
  Slots slots_;
  FinishedRuns finished_{sweep_, host_.out, host_.recorder, /*write_files=*/!host_.outcome};
  Queue queue_;
  MemoryEstimator estimator_;
  std::map<int64_t, Trial> paused_;  // by number
  std::vector<ActiveRun> running_;
  std::unordered_set<std::string> wanted_;  // identities
  Clock::time_point watched_{}, shown_{};
  int64_t failed_ = 0;
  int64_t stopped_ = 0;  // runs that wait until the sweep is called again
  std::string recipe_;   // as an identity
  bool recipe_changed_ = false;
  SweepReport report_;
};

}  // namespace

SweepReport run_sweep(const SweepOptions& sweep, const SweepHost& host) {
  return Coordinator(sweep, host).run();
}

}  // namespace tare::sweep
