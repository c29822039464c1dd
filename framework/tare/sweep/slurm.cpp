#include "tare/sweep/slurm.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/sweep/slurm_files.h"
#include "tare/sweep/slurm_tools.h"

namespace tare::sweep {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kReadEvery{500}, kReadEach{5};  // the larger, for all agents
constexpr std::chrono::seconds kAskEvery{5}, kSubmitEvery{30};
constexpr int kUnseen = 2;        // answers of squeue without a job, after which it is over
constexpr int kBrokenAgents = 3;  // that have ended before they began

struct Agent {
  int unseen = 0;       // answers of squeue in a row
  bool pending = true;  // not on a node now
  bool begun = false;   // it has been there, perhaps before its job was requeued
  bool gone = false;    // it has ended, or Slurm does not know it; it may come back
  bool held = false;    // somebody has yet to ask how its order ended
  Order order{};
  AgentState state{};

  [[nodiscard]] bool is_busy() const { return !gone && order.number > state.done; }
  [[nodiscard]] bool is_there() const { return !gone && (!order.leave || is_busy()); }
  [[nodiscard]] bool is_idle() const {
    return is_there() && begun && !pending && !is_busy() && !held;
  }
};

}  // namespace

/// The agents of a sweep as this process knows them.
class SlurmExecutor::Cluster {
 public:
  Cluster(const SweepOptions& sweep, const std::vector<std::string>& agent)
      : folder_(fs::absolute(sweep.log_dir) / "slurm"), tools_(folder_, sweep.executor, agent) {
    require_no_other();
    for (const auto& id : tools_.begun()) {
      Agent& known = agents_[id];
      known.begun = true;
      known.order = read_order(folder_ / id);
      number_ = std::max(number_, known.order.number);
    }
    beat();
  }

  /// What has not begun is cancelled, and the agents leave when nothing is on.
  ~Cluster() {
    for (auto& [id, agent] : agents_)
      if (!agent.gone) let_go(id, agent);
    try {
      tools_.cancel(cancelled_);
      std::error_code ignored;
      fs::remove(folder_ / "beat", ignored);
    } catch (const Error& error) {
      log::error(error.what());
    }
  }

  void tend(int64_t runs) {
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

  int64_t give(const std::string& id, const ChildStart& how) {
    Agent& agent = agents_.at(id);
    agent.order = {.number = ++number_, .how = how};
    agent.order.how.environment.clear();  // its threads are those of the job
    agent.held = true;
    write(folder_ / id, agent.order);
    return agent.order.number;
  }

  struct Given {
    std::string agent{};
    int64_t order = 0;
  };

  /// The latest order for each run by its name, of an earlier coordinator.
  [[nodiscard]] std::map<std::string, Given> orders() {
    if (!agents_.empty()) ask_now();
    std::map<std::string, Given> all;
    for (const auto& [id, agent] : agents_) {
      if (agent.order.number == 0) continue;
      Given& given = all[agent.order.how.name];
      if (agent.order.number > given.order) given = {.agent = id, .order = agent.order.number};
    }
    for (const auto& [name, given] : all) agents_.at(given.agent).held = true;
    return all;
  }

  void release(const Given& given) { agents_.at(given.agent).held = false; }

  [[nodiscard]] bool has_ended(const Given& given) {
    read();
    const Agent& agent = agents_.at(given.agent);
    return agent.state.done >= given.order || agent.gone;
  }

  ChildEnd end_of(const Given& given) {
    const Agent& agent = agents_.at(given.agent);
    ChildEnd end{.signal = SIGKILL};
    if (agent.state.done >= given.order) {
      end = agent.state.end;
      end.saved = agent.order.stop && end.was_stopped();
      return end;
    }
    // One that has left without having done it has saved, or has not seen the order.
    end.saved = agent.state.saved >= given.order || agent.state.left;
    stop(given);  // if the job comes back, it finds it so
    return end.saved ? ChildEnd{.saved = true} : end;
  }

  void stop(const Given& given) {
    Agent& agent = agents_.at(given.agent);
    if (agent.order.number != given.order || agent.order.stop) return;
    agent.order.stop = true;
    write(folder_ / given.agent, agent.order);
    if (agent.pending && !agent.gone)
      tools_.cancel({given.agent});  // it could be long to read that
  }

 private:
  /// Where a file system has no locks, another coordinator is told by its beat.
  void require_no_other() const {
    const auto before = read_beat(folder_);
    if (before.empty()) return;
    for (const auto start = Clock::now(); Clock::now() - start < kAskEvery + kReadEvery;) {
      std::this_thread::sleep_for(kReadEvery);
      if (read_beat(folder_) != before)
        throw StateError("sweep.slurm", "in use by another process, perhaps of another machine",
                         "wait for it, or end it");
    }
  }

  void beat() const {
    const auto now = std::chrono::system_clock::now().time_since_epoch().count();
    io::write_atomically(folder_ / "beat", std::to_string(now) + '\n', io::Flush::no);
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
      if (agent.order.leave) write(folder_ / id, agent.order);
    }
    if (!agent.begun) return;
    const AgentState before = std::exchange(agent.state, read_state(folder_ / id));
    if (agent.state.restarts != before.restarts) agent.pending = false;
    if (agent.state.done > before.done) broken_ = 0;
    if (agent.state.left && !agent.gone) end(id, agent);
  }

  void end(const std::string& id, Agent& agent) {
    agent.gone = true;
    const bool has_worked = agent.state.done > 0 || agent.state.saved > 0;
    if (has_worked || agent.order.leave || ++broken_ < kBrokenAgents) return;
    throw StateError(
        "sweep.slurm",
        "agents end before they have done anything; the last one printed: " + tools_.log_of(id));
  }

  /// Without waiting for the answer.
  void ask() {
    if (!tools_.asks() && Clock::now() - asked_ >= kAskEvery) {
      tools_.ask();
      asked_ = Clock::now();
      beat();
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
        if (agent.gone && !agent.pending && !read_state(folder_ / id).left) agent.gone = false;
      } else if (!agent.gone && ++agent.unseen >= kUnseen) {
        read(id, agent);  // what it wrote last
        if (agent.gone) continue;
        if (agent.is_busy())
          log::warning("[sweep] Slurm no longer knows the job " + id + ", which had " +
                       agent.order.how.name);
        end(id, agent);
      }
    }
  }

  /// Twice, as one answer could have come between two states of a job.
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
    agent.order.leave = true;
    if (!agent.begun) return;
    try {
      write(folder_ / id, agent.order);
    } catch (const Error& error) {
      log::error(error.what());
    }
  }

  fs::path folder_;
  SlurmTools tools_;
  std::map<std::string, Agent> agents_;  // by id
  std::vector<std::string> cancelled_;
  Clock::time_point read_{}, asked_{}, refused_ = Clock::now() - kSubmitEvery;
  int64_t number_ = 0;  // of the latest order
  int broken_ = 0;
};

/// A run that an agent has been given.
class SlurmExecutor::Run : public Process {
 public:
  Run(std::shared_ptr<Cluster> cluster, Cluster::Given given)
      : cluster_(std::move(cluster)), given_(std::move(given)) {}
  ~Run() override { cluster_->release(given_); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  [[nodiscard]] ChildMark mark() const override { return ChildMark::of_cluster(); }
  [[nodiscard]] int descriptor() const override { return -1; }
  [[nodiscard]] bool has_ended() override { return cluster_->has_ended(given_); }
  ChildEnd wait() override { return cluster_->end_of(given_); }
  void send(int) override { cluster_->stop(given_); }

 private:
  std::shared_ptr<Cluster> cluster_;
  Cluster::Given given_;
};

SlurmExecutor::SlurmExecutor(const SweepOptions& sweep, std::vector<std::string> agent)
    : sweep_(sweep), agent_(std::move(agent)) {
  require_slurm();
}
SlurmExecutor::~SlurmExecutor() = default;

std::map<std::string, std::unique_ptr<Process>> SlurmExecutor::left_behind(
    const std::vector<ChildMark>& marks) {
  end_processes(marks);
  cluster_ = std::make_shared<Cluster>(sweep_, agent_);
  std::map<std::string, std::unique_ptr<Process>> all;
  for (const auto& [name, given] : cluster_->orders())
    all[name] = std::make_unique<Run>(cluster_, given);
  return all;
}

bool SlurmExecutor::has_room(int64_t runs) {
  cluster_->tend(runs);
  return !cluster_->idle().empty();
}

std::unique_ptr<Process> SlurmExecutor::start(const ChildStart& how) {
  const std::string agent = cluster_->idle();
  if (agent.empty()) throw StateError("sweep.slurm", "no agent is idle", "ask has_room() first");
  const int64_t order = cluster_->give(agent, how);
  return std::make_unique<Run>(cluster_, Cluster::Given{.agent = agent, .order = order});
}

}  // namespace tare::sweep
