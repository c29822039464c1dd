// Keeps agents in jobs of Slurm, gives them runs and follows both.
#include "tare/launch/slurm.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/config/field.h"
#include "tare/launch/executors.h"
#include "tare/launch/slurm_agent.h"
#include "tare/launch/slurm_files.h"
#include "tare/launch/slurm_tools.h"

namespace tare::launch {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kReadEvery{500}, kReadEach{5};  // the larger, for all agents
constexpr std::chrono::milliseconds kPollEvery{2000};               // over a network's file system
constexpr std::chrono::seconds kAskEvery{5}, kSubmitEvery{30};
constexpr const char* kType = "slurm";
constexpr int kUnseen = 2;        // answers of squeue without a job, after which it is over
constexpr int kBrokenAgents = 3;  // that have ended before they began

struct Agent {
  int unseen = 0;       // answers of squeue in a row
  bool pending = true;  // not on a node now
  bool begun = false;   // it has been there, perhaps before its job was requeued
  bool gone = false;    // it has ended, or Slurm does not know it; it may come back
  bool held = false;    // somebody has yet to ask how its run ended
  Job job{};
  AgentState state{};

  [[nodiscard]] bool is_busy() const { return !gone && job.number > state.done; }
  [[nodiscard]] bool is_there() const { return !gone && (!job.retire || is_busy()); }
  [[nodiscard]] bool is_idle() const {
    return is_there() && begun && !pending && !is_busy() && !held;
  }
};

/// Options of sbatch that the jobs of a sweep depend on.
const std::vector<std::string> kOurs{
    "--array",    "-a", "--job-name", "-J",         "--output",     "-o",          "--error", "-e",
    "--chdir",    "-D", "--signal",   "--requeue",  "--no-requeue", "--open-mode", "--wait",  "-W",
    "--clusters", "-M", "--wrap",     "--parsable", "--ntasks",     "-n"};

/// Whether the option is one of them, also abbreviated, "--job-n=x", or with the value behind the
/// letter, "-Jx".
bool is_ours(const std::string& option) {
  const bool is_long = option.starts_with("--");
  const std::string name = is_long ? option.substr(0, option.find('=')) : option.substr(0, 2);
  return std::ranges::any_of(kOurs, [&](const std::string& ours) {
    return is_long ? ours.starts_with(name) : ours == name;
  });
}

void refuse(const char* problem, const std::string& allowed, const std::string& got) {
  throw ConfigError("sweep", "options", problem, allowed, printable(got));
}

void check_options(const SlurmOptions& slurm) {
  for (const auto& option : slurm.options) {
    if (!option.starts_with('-') || option.find('\n') != std::string::npos)
      refuse("has an entry that is not an option of sbatch", "such as --gres=gpu:1", option);
    if (is_ours(option))
      refuse("has an option that the sweep sets itself", "none of " + listed(kOurs), option);
  }
}

}  // namespace

/// The agents of a sweep as this process knows them.
class SlurmExecutor::Cluster {
 public:
  Cluster(const SlurmOptions& options, const ExecutorContext& context)
      : folder_(fs::absolute(context.folder) / "slurm"),
        tools_(folder_, options, context.agent, context.ranks),
        ranks_(context.ranks) {
    require_no_other();
    for (const auto& id : tools_.begun()) {
      Agent& known = agents_[id];
      known.begun = true;
      known.job = read_job(folder_ / id);
      number_ = std::max(number_, known.job.number);
    }
    heartbeat();
  }

  /// Cancels the jobs that have not begun; the agents retire when nothing is running.
  ~Cluster() {
    for (auto& [id, agent] : agents_)
      if (!agent.gone) let_go(id, agent);
    try {
      tools_.cancel(cancelled_);
      std::error_code ignored;
      fs::remove(folder_ / kHeartbeatFile, ignored);
    } catch (const Error& error) {
      log::error(error.what());
    }
  }

  void reconcile(int64_t runs) {
    read();
    ask();
    int64_t there = 0, busy = 0;
    for (const auto& [id, agent] : agents_) {
      there += agent.is_there() ? 1 : 0;
      busy += agent.is_busy() ? 1 : 0;
    }
    const int64_t wanted = std::min(kMaxSlurmAgents, std::max(runs, busy));
    if (there < wanted) submit(wanted - there, there == 0);
    for (auto agent = agents_.rbegin(); agent != agents_.rend() && there > wanted; ++agent)
      if (agent->second.is_there() && !agent->second.is_busy()) {
        let_go(agent->first, agent->second);
        --there;
      }
    tools_.cancel(std::exchange(cancelled_, {}));
  }

  [[nodiscard]] std::string idle() const {
    for (const auto& [id, agent] : agents_)
      if (agent.is_idle()) return id;
    return {};
  }

  int64_t assign(const std::string& id, const ChildStart& how) {
    Agent& agent = agents_.at(id);
    agent.job = {.number = ++number_, .how = how, .ranks = ranks_};
    agent.job.how.environment.clear();  // its threads are those of the job
    agent.held = true;
    write(folder_ / id, agent.job);
    return agent.job.number;
  }

  struct Assignment {
    std::string agent{};
    int64_t job = 0;
  };

  /// Returns the latest job of an earlier coordinator for each run, by the run's name.
  [[nodiscard]] std::map<std::string, Assignment> jobs() {
    if (!agents_.empty()) ask_now();
    std::map<std::string, Assignment> all;
    for (const auto& [id, agent] : agents_) {
      if (agent.job.number == 0) continue;
      Assignment& assignment = all[agent.job.how.name];
      if (agent.job.number > assignment.job) assignment = {.agent = id, .job = agent.job.number};
    }
    for (const auto& [name, assignment] : all) agents_.at(assignment.agent).held = true;
    return all;
  }

  void release(const Assignment& assignment) { agents_.at(assignment.agent).held = false; }

  [[nodiscard]] bool has_ended(const Assignment& assignment) {
    read();
    const Agent& agent = agents_.at(assignment.agent);
    return agent.state.done >= assignment.job || agent.gone;
  }

  ChildEnd end_of(const Assignment& assignment) {
    const Agent& agent = agents_.at(assignment.agent);
    ChildEnd end{.signal = SIGKILL};
    if (agent.state.done >= assignment.job) {
      end = agent.state.end;
      end.saved = agent.job.stop && end.was_stopped();
      return end;
    }
    // An agent that has retired without having done it has saved, or has not seen the job.
    end.saved = agent.state.saved >= assignment.job || agent.state.retired;
    stop(assignment);  // if the job comes back, it finds it so
    return end.saved ? ChildEnd{.saved = true} : end;
  }

  void stop(const Assignment& assignment) {
    Agent& agent = agents_.at(assignment.agent);
    if (agent.job.number != assignment.job || agent.job.stop) return;
    agent.job.stop = true;
    write(folder_ / assignment.agent, agent.job);
    if (agent.pending && !agent.gone)
      tools_.cancel({assignment.agent});  // it could be long to read that
  }

 private:
  /// Throws if another coordinator runs, which its heartbeat shows where a file system has no
  /// locks.
  void require_no_other() const {
    const auto before = read_heartbeat(folder_);
    if (before.empty()) return;
    for (const auto start = Clock::now(); Clock::now() - start < kAskEvery + kReadEvery;) {
      std::this_thread::sleep_for(kReadEvery);
      if (read_heartbeat(folder_) != before)
        throw StateError("sweep.slurm", "in use by another process, perhaps of another machine",
                         "wait for it, or end it");
    }
  }

  void heartbeat() const {
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    io::write_atomically(folder_ / kHeartbeatFile, std::to_string(now) + '\n', io::Flush::no);
  }

  void read() {
    int64_t there = 0;
    for (const auto& [id, agent] : agents_) there += agent.gone ? 0 : 1;
    if (Clock::now() - read_ < std::max<Clock::duration>(kReadEvery, kReadEach * there)) return;
    for (auto& [id, agent] : agents_)
      if (!agent.gone) read(id, agent);
    read_ = Clock::now();
  }

  void read(const std::string& id, Agent& agent) {
    if (!agent.begun && has_state(folder_ / id)) {
      agent.begun = true;
      agent.pending = false;
      if (agent.job.retire) write(folder_ / id, agent.job);
    }
    if (!agent.begun) return;
    const AgentState before = std::exchange(agent.state, read_state(folder_ / id));
    if (agent.state.restarts != before.restarts) agent.pending = false;
    if (agent.state.done > before.done) broken_ = 0;
    if (agent.state.retired && !agent.gone) end(id, agent);
  }

  void end(const std::string& id, Agent& agent) {
    agent.gone = true;
    const bool has_worked = agent.state.done > 0 || agent.state.saved > 0;
    if (has_worked || agent.job.retire || ++broken_ < kBrokenAgents) return;
    throw StateError(
        "sweep.slurm",
        "agents end before they have done anything; the last one printed: " + tools_.log_of(id));
  }

  /// Asks Slurm for its tasks without waiting for the answer.
  void ask() {
    if (!tools_.asks() && Clock::now() - asked_ >= kAskEvery) {
      tools_.ask();
      asked_ = Clock::now();
      heartbeat();
    }
    if (const auto answer = tools_.answer()) take(*answer);
  }

  void take(const SlurmTools::Tasks& tasks) {
    for (const auto& [id, state] : tasks)
      if (state != "COMPLETING") agents_[id];  // also of earlier coordinators
    for (auto& [id, agent] : agents_) {
      const auto found = tasks.find(id);
      if (found != tasks.end()) {
        agent.unseen = 0;
        agent.pending = found->second != "RUNNING";
        if (agent.gone && !agent.pending && !read_state(folder_ / id).retired) agent.gone = false;
      } else if (!agent.gone && ++agent.unseen >= kUnseen) {
        read(id, agent);  // what it wrote last
        if (agent.gone) continue;
        if (agent.is_busy())
          log::warning("[sweep] Slurm no longer knows the job " + id + ", which had " +
                       agent.job.how.name);
        end(id, agent);
      }
    }
  }

  /// Asks twice, as one answer could have come between two states of a job.
  void ask_now() {
    for (int i = 0; i < kUnseen; ++i) {
      take(tools_.wait_for_answer());
      std::this_thread::sleep_for(kReadEvery);
    }
    read();
  }

  void submit(int64_t count, bool must) {
    if (Clock::now() - refused_ < kSubmitEvery) return;
    try {
      for (const auto& id : tools_.submit(count)) agents_[id];
    } catch (const StateError& error) {
      if (must) throw;
      refused_ = Clock::now();
      log::warning(error.what());
    }
  }

  void let_go(const std::string& id, Agent& agent) {
    if (!agent.is_busy() && (agent.pending || !agent.begun)) cancelled_.push_back(id);
    agent.job.retire = true;
    if (!agent.begun) return;
    try {
      write(folder_ / id, agent.job);
    } catch (const Error& error) {
      log::error(error.what());
    }
  }

  fs::path folder_;
  SlurmTools tools_;
  int64_t ranks_;
  std::map<std::string, Agent> agents_;  // by id
  std::vector<std::string> cancelled_;
  Clock::time_point read_{}, asked_{}, refused_ = Clock::now() - kSubmitEvery;
  int64_t number_ = 0;  // of the latest job
  int broken_ = 0;
};

/// A run that is assigned to an agent.
class SlurmExecutor::Run : public Process {
 public:
  Run(std::shared_ptr<Cluster> cluster, Cluster::Assignment assignment)
      : cluster_(std::move(cluster)), assignment_(std::move(assignment)) {}
  ~Run() override { cluster_->release(assignment_); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  [[nodiscard]] ProcessId id() const override { return ProcessId::of_executor(kType); }
  [[nodiscard]] int descriptor() const override { return -1; }
  [[nodiscard]] bool has_ended() override { return cluster_->has_ended(assignment_); }
  ChildEnd wait() override { return cluster_->end_of(assignment_); }
  void send(int) override { cluster_->stop(assignment_); }

 private:
  std::shared_ptr<Cluster> cluster_;
  Cluster::Assignment assignment_;
};

SlurmExecutor::SlurmExecutor(SlurmOptions options, ExecutorContext context)
    : options_(std::move(options)), context_(std::move(context)) {}
SlurmExecutor::~SlurmExecutor() = default;

void SlurmExecutor::require_available() const { require_slurm(); }

std::vector<DeviceSlot> SlurmExecutor::slots(int64_t jobs) const {
  constexpr int64_t kAny = int64_t{1} << 60;
  return {{.name = "Slurm jobs",
           .total_bytes = kAny,
           .jobs = jobs > 0 ? jobs : kMaxSlurmAgents,
           .kind = SlotKind::remote}};
}

std::chrono::milliseconds SlurmExecutor::poll_interval() const { return kPollEvery; }

std::map<std::string, std::unique_ptr<Process>> SlurmExecutor::recover(
    const std::vector<ProcessId>& ids) {
  end_processes(ids);
  cluster_ = std::make_shared<Cluster>(options_, context_);
  std::map<std::string, std::unique_ptr<Process>> all;
  for (const auto& [name, assignment] : cluster_->jobs())
    all[name] = std::make_unique<Run>(cluster_, assignment);
  return all;
}

bool SlurmExecutor::has_capacity(int64_t runs) {
  cluster_->reconcile(runs);
  return !cluster_->idle().empty();
}

std::unique_ptr<Process> SlurmExecutor::start(const ChildStart& how) {
  const std::string agent = cluster_->idle();
  if (agent.empty())
    throw StateError("sweep.slurm", "no agent is idle", "ask has_capacity() first");
  const int64_t job = cluster_->assign(agent, how);
  return std::make_unique<Run>(cluster_, Cluster::Assignment{.agent = agent, .job = job});
}

namespace {

// Throws ConfigError for options of sbatch that the sweep sets itself.
ExecutorType slurm_executor_type(const SlurmOptions& options) {
  check_options(options);
  return {.is_remote = true,
          .make = [options](const ExecutorContext& context) -> std::unique_ptr<Executor> {
            return std::make_unique<SlurmExecutor>(options, context);
          },
          .serve = [](const fs::path& folder) { return run_slurm_agent(folder, slurm_task()); }};
}

}  // namespace

namespace executors {
void add_slurm(Registry& all) {
  all.add<SlurmOptions>("slurm", "starts runs in jobs of a Slurm cluster", slurm_executor_type);
}
}  // namespace executors

}  // namespace tare::launch
