// Serves as the agent of a sweep in a job of Slurm.
#include "tare/launch/slurm_agent.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <optional>

#include "tare/base/error.h"
#include "tare/base/host_name.h"
#include "tare/base/io.h"
#include "tare/launch/slurm_files.h"
#include "tare/launch/slurm_tools.h"
#include "tare/runtime/exit_code.h"
#include "tare/runtime/threads.h"

namespace tare::launch {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kLookMs = 500;
constexpr const char* kProcessors = "SLURM_CPUS_PER_TASK";
constexpr std::chrono::minutes kPatience{2};    // without a coordinator
constexpr std::chrono::minutes kForRequeue{1};  // until Slurm ends the job
constexpr std::chrono::seconds kAskAgain{5};    // to save and end

int64_t number_of(const char* text) {
  int64_t number = 0;
  if (text) std::from_chars(text, text + std::char_traits<char>::length(text), number);
  return number;
}

/// Signals as something that poll() waits for; children get them as usual.
class Signals {
 public:
  Signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) sigaddset(&set, signal);
    if (sigprocmask(SIG_BLOCK, &set, nullptr) != 0 ||
        (descriptor_ = signalfd(-1, &set, SFD_CLOEXEC)) < 0)
      throw IoError("sweep.slurm", "a descriptor of signals", errno);
  }
  ~Signals() { close(descriptor_); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// Waits for the signal that comes before `other` is readable and the time is over; 0: none.
  [[nodiscard]] int wait(int other) const {
    pollfd ends[]{{descriptor_, POLLIN, 0}, {other, POLLIN, 0}};
    if (poll(ends, 2, kLookMs) <= 0 || ends[0].revents == 0) return 0;
    signalfd_siginfo info{};
    return read(descriptor_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo)
                                                                : 0;
  }

 private:
  int descriptor_ = -1;
};

class Agent {
 public:
  Agent(const fs::path& folder, const SlurmTask& task)
      : place_(folder), task_(task), folder_(folder / task.id) {
    io::make_directories(folder_);
    const AgentState before = read_state(folder_);  // of the job before it was requeued
    state_ = {
        .restarts = task.restarts, .host = host_name(), .done = before.done, .end = before.end};
    write(folder_, state_);
    print("is there");
  }

  int run() {
    Clock::time_point seen = Clock::now();
    std::string heartbeat;
    while (true) {
      const Job job = read_job(folder_);
      if (job.number > state_.done) {
        if (!carry_out(job)) break;
        seen = Clock::now();
        continue;
      }
      const int signal = signals_.wait(-1);
      if (signal == SIGTERM) break;  // Slurm alone knows whether the job comes back
      if (job.retire || signal != 0 || Clock::now() - seen > kPatience) {
        retire();
        break;
      }
      if (std::string now = read_heartbeat(place_); now != heartbeat) {
        heartbeat = std::move(now);
        seen = Clock::now();
      }
    }
    print(state_.retired ? "leaves" : "ends; Slurm may requeue it");
    return kSuccess;
  }

 private:
  /// Whether the agent can continue.
  bool carry_out(const Job& job) {
    if (job.stop) {  // before it has begun
      end(job, {.exit_code = 128 + SIGTERM});
      return true;
    }
    print("runs " + job.how.name);
    ChildStart how = job.how;
    how.command = in_each_task(how.command, job.ranks);
    how.environment.emplace_back("OMP_NUM_THREADS", std::to_string(threads()));
    // srun does not take the processors of a task from the job.
    if (const char* given = std::getenv(kProcessors))
      how.environment.emplace_back("SRUN_CPUS_PER_TASK", given);
    Child child(how);
    std::optional<Clock::time_point> asked;
    int gone = 0;  // the signal that takes the job's place away
    while (!child.has_ended()) {
      if (const int signal = signals_.wait(child.descriptor()); signal != 0) gone = signal;
      // Slurm itself sends SIGTERM to all processes of the job; a second one would end the run.
      const bool ends = gone == SIGUSR1 || (gone == 0 && read_job(folder_).stop);
      const bool may_have_missed =
          job.ranks > 1 && asked && Clock::now() - *asked > kAskAgain;  // a task that had not begun
      if (!ends || (asked && !may_have_missed)) continue;
      if (!asked) print("asks " + job.how.name + " to save and end");
      asked = Clock::now();
      ask(job, child);
    }
    const ChildEnd how_it_ended = child.wait();
    if (gone == 0 || !how_it_ended.was_stopped() || read_job(folder_).stop) {
      end(job, how_it_ended);
      if (gone == SIGUSR1) retire();
      return gone == 0;
    }
    print("has saved " + job.how.name);
    state_.saved = job.number;
    write(folder_, state_);
    if (gone == SIGUSR1 && !requeue()) retire();  // after SIGTERM Slurm alone knows
    return false;
  }

  /// Asks a run to save and end. For a signal srun would end its tasks at once; so Slurm is asked
  /// to send it to the tasks, for which a second one has no effect.
  void ask(const Job& job, Child& child) const {
    if (job.ranks == 1) {
      child.send(SIGTERM);
      return;
    }
    const fs::path log = folder_ / "scancel.log";
    Child tool({.command = {"scancel", "--signal=TERM", task_.id}, .out = log, .err = log});
    if (tool.wait().exit_code != 0) print("cannot ask it; see " + log.string());
  }

  /// Marks this job as retired: it is not queued again.
  void retire() {
    state_.retired = true;
    write(folder_, state_);
  }

  void end(const Job& job, const ChildEnd& how) {
    state_.done = job.number;
    state_.end = how;
    write(folder_, state_);
  }

  /// Slurm starts the task again with the same job, elsewhere or later; false: Slurm refuses.
  [[nodiscard]] bool requeue() const {
    Child tool({.command = {"scontrol", "requeue", task_.id},
                .out = folder_ / "scontrol.log",
                .err = folder_ / "scontrol.log"});
    if (tool.wait().exit_code != 0) {
      print("is not requeued; see " + (folder_ / "scontrol.log").string());
      return false;
    }
    for (const auto asked = Clock::now(); Clock::now() - asked < kForRequeue;)
      if (signals_.wait(-1) == SIGTERM) break;
    return true;
  }

  [[nodiscard]] static int64_t threads() {
    const int64_t given = number_of(std::getenv(kProcessors));
    const int64_t tasks = std::max<int64_t>(1, number_of(std::getenv("SLURM_NTASKS")));
    return given > 0 ? given : std::max<int64_t>(1, runtime::usable_processors() / tasks);
  }

  void print(const std::string& text) const {
    std::cout << "[agent " << task_.id << " on " << state_.host << "] " << text << std::endl;
  }

  fs::path place_;
  SlurmTask task_;
  fs::path folder_;
  Signals signals_;
  AgentState state_;
};

}  // namespace

SlurmTask slurm_task() {
  const char *job = std::getenv("SLURM_ARRAY_JOB_ID"), *task = std::getenv("SLURM_ARRAY_TASK_ID");
  if (!job || !task)
    throw StateError("tare sweep agent", "this process is not a task of a Slurm job array",
                     "tare sweep run submits them, with executor: slurm");
  return {.id = std::string(job) + '_' + task,
          .restarts = number_of(std::getenv("SLURM_RESTART_COUNT"))};
}

int run_slurm_agent(const fs::path& folder, const SlurmTask& task) {
  return Agent(folder, task).run();
}

}  // namespace tare::launch
