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
  bool gone = false;
  Order order{};
  AgentState state{};

  [[nodiscard]] bool is_busy() const { return order.number > state.done && !order.leave; }
  [[nodiscard]] bool is_idle() const { return begun && !gone && !order.leave && !is_busy(); }
};

}  // namespace

/// The agents of a sweep as this process knows them.
class SlurmExecutor::Cluster {
 public:
  Cluster(const SweepOptions& sweep, std::vector<std::string> agent)
      : folder_(fs::absolute(sweep.log_dir) / "slurm"),
        tools_(folder_, sweep.executor, std::move(agent)) {
    for (const auto& id : tools_.begun()) {
      Agent& known = agents_[id];
      known.begun = true;
      known.order = read_order(folder_ / id);
      number_ = std::max(number_, known.order.number);
    }
  }

  /// Agents that are idle leave, and what has not begun is cancelled.
  ~Cluster() {
    try {
      for (auto& [id, agent] : agents_)
        if (!agent.gone) let_go(id, agent);
      tools_.cancel(cancelled_);
    } catch (const Error& error) {
      log::error(error.what());
    }
  }

  void tend(int64_t runs) {
    read();
    ask();
    int64_t there = 0, busy = 0;
    for (const auto& [id, agent] : agents_) {
      if (agent.gone || agent.order.leave) continue;
      ++there;
      busy += agent.is_busy() ? 1 : 0;
    }
    const int64_t wanted = std::min(kMaxSlurmAgents, std::max(runs, busy));
    if (there < wanted) submit(wanted - there, there == 0);
    for (auto agent = agents_.rbegin(); agent != agents_.rend() && there > wanted; ++agent)
      if (!agent->second.gone && !agent->second.order.leave && !agent->second.is_busy()) {
        let_go(agent->first, agent->second);
        --there;
      }
    tools_.cancel(std::exchange(cancelled_, {}));
  }

  [[nodiscard]] std::string idle() const {
    for (const auto& [id, agent] : agents_)
      if (agent.is_idle() && !agent.pending) return id;
    return {};
  }

  int64_t give(const std::string& id, const ChildStart& how) {
    Agent& agent = agents_.at(id);
    agent.order = {.number = ++number_, .how = how};
    agent.order.how.environment.clear();  // its threads are those of the job
    write(folder_ / id, agent.order);
    return agent.order.number;
  }

  /// The latest order for each run by its name, of an earlier coordinator: the agent and the
  /// number.
  [[nodiscard]] std::map<std::string, std::pair<std::string, int64_t>> orders() {
    if (!agents_.empty()) ask_now();
    std::map<std::string, std::pair<std::string, int64_t>> all;
    for (const auto& [id, agent] : agents_) {
      auto& [by, number] = all[agent.order.how.name];
      if (agent.order.number > number) {
        by = id;
        number = agent.order.number;
      }
    }
    return all;
  }

  [[nodiscard]] bool has_ended(const std::string& id, int64_t order) {
    read();
    const Agent& agent = agents_.at(id);
    return agent.state.done >= order || agent.gone;
  }

  ChildEnd end_of(const std::string& id, int64_t order) {
    Agent& agent = agents_.at(id);
    if (agent.state.done >= order) return agent.state.end;
    stop(id, order);  // if the job were requeued by hand, it would find it so
    agent.gone = true;
    if (agent.state.saved >= order) return {.saved = true};
    return {.signal = SIGKILL};
  }

  void stop(const std::string& id, int64_t order) {
    Agent& agent = agents_.at(id);
    if (agent.order.number != order || agent.order.stop) return;
    agent.order.stop = true;
    write(folder_ / id, agent.order);
    if (agent.pending && !agent.gone) tools_.cancel({id});  // it could wait for long to read that
  }

 private:
  void read() {
    const auto every =
        std::max<Clock::duration>(kReadEvery, kReadEach * static_cast<int64_t>(agents_.size()));
    if (Clock::now() - read_ < every) return;
    for (auto& [id, agent] : agents_) {
      if (agent.gone) continue;
      if (!agent.begun && has_state(folder_ / id)) {
        agent.begun = true;
        agent.pending = false;
        broken_ = 0;
      }
      if (!agent.begun) continue;
      const auto restarts = std::exchange(agent.state, read_state(folder_ / id)).restarts;
      if (agent.state.restarts != restarts) agent.pending = false;
      agent.gone = agent.state.left;
    }
    read_ = Clock::now();
  }

  /// Without waiting for the answer.
  void ask() {
    if (!tools_.asks() && Clock::now() - asked_ >= kAskEvery) {
      tools_.ask();
      asked_ = Clock::now();
      io::write_atomically(folder_ / "beat", std::to_string(++beats_) + '\n');
    }
    if (const auto answer = tools_.answer()) take(*answer);
  }

  void take(const SlurmTools::Tasks& tasks) {
    for (const auto& [id, state] : tasks)
      if (state != "COMPLETING") agents_[id];  // also of earlier coordinators
    for (auto& [id, agent] : agents_) {
      if (agent.gone) continue;
      const auto found = tasks.find(id);
      agent.unseen = found == tasks.end() ? agent.unseen + 1 : 0;
      if (found != tasks.end()) agent.pending = found->second != "RUNNING";
      if (agent.unseen < kUnseen) continue;
      agent.gone = true;
      if (agent.is_busy())
        log::warning("[sweep] Slurm no longer knows the job " + id + ", which had " +
                     agent.order.how.name);
      if (!agent.begun && !agent.order.leave && ++broken_ >= kBrokenAgents)
        throw StateError("sweep.slurm", "agents end before they begin; the last one printed: " +
                                            tools_.log_of(id));
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
    if (agent.pending && !agent.is_busy()) cancelled_.push_back(id);
    agent.order.leave = true;
    if (agent.begun) write(folder_ / id, agent.order);
  }

  fs::path folder_;
  SlurmTools tools_;
  std::map<std::string, Agent> agents_;  // by id
  std::vector<std::string> cancelled_;
  Clock::time_point read_{}, asked_{}, refused_ = Clock::now() - kSubmitEvery;
  int64_t number_ = 0;  // of the latest order
  int64_t beats_ = 0;
  int broken_ = 0;
};

/// A run that an agent has been given.
class SlurmExecutor::Run : public Process {
 public:
  Run(std::shared_ptr<Cluster> cluster, std::string agent, int64_t order)
      : cluster_(std::move(cluster)), agent_(std::move(agent)), order_(order) {}

  [[nodiscard]] ChildMark mark() const override { return ChildMark::of_cluster(); }
  [[nodiscard]] int descriptor() const override { return -1; }
  [[nodiscard]] bool has_ended() override { return cluster_->has_ended(agent_, order_); }
  ChildEnd wait() override { return cluster_->end_of(agent_, order_); }
  void send(int) override { cluster_->stop(agent_, order_); }

 private:
  std::shared_ptr<Cluster> cluster_;
  std::string agent_;
  int64_t order_;
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
  for (const auto& [name, order] : cluster_->orders())
    all[name] = std::make_unique<Run>(cluster_, order.first, order.second);
  return all;
}

bool SlurmExecutor::has_room(int64_t runs) {
  cluster_->tend(runs);
  return !cluster_->idle().empty();
}

std::unique_ptr<Process> SlurmExecutor::start(const ChildStart& how) {
  const std::string agent = cluster_->idle();
  if (agent.empty()) throw StateError("sweep.slurm", "no agent is idle", "ask has_room() first");
  return std::make_unique<Run>(cluster_, agent, cluster_->give(agent, how));
}

}  // namespace tare::sweep
