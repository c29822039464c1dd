// Starts ranks as processes, passes on what they say, and stops them together.
#include "tare/cli/ranks.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <thread>
#include <utility>

#include "tare/base/content_hash.h"
#include "tare/base/error.h"
#include "tare/base/host_name.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/config/node.h"
#include "tare/launch/process.h"
#include "tare/memory/backend.h"
#include "tare/memory/collectives.h"
#include "tare/recipe/rank_check.h"
#include "tare/runtime/device_name.h"
#include "tare/runtime/exit_code.h"

namespace tare::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kStartedBy = "tare run --ranks";
constexpr const char* kNext = "--resume continues from the last checkpoint, if there is one";
// When a rank has ended with an error: time for the others to notice, then, behind SIGTERM, for
// those that do not compute, and for those that do, because they may be writing a checkpoint.
constexpr std::chrono::seconds kToEnd{4}, kToStop{4}, kToSave{30};
// Behind a signal that the ranks were given: how long none of them may compute, while a step ends
// and a checkpoint is written.
constexpr std::chrono::seconds kIdle{30};
constexpr std::chrono::milliseconds kForFirst{100};  // for rank 0 to say a line of another rank too
constexpr size_t kLines = 10'000;                    // that are remembered

volatile std::sig_atomic_t g_signal = 0;

/// Notes SIGINT and SIGTERM while it lives.
class SignalNote {
 public:
  SignalNote() {
    struct sigaction note {};
    note.sa_handler = [](int signal) { g_signal = signal; };
    sigaction(SIGINT, &note, &int_);
    sigaction(SIGTERM, &note, &term_);
  }
  ~SignalNote() {
    sigaction(SIGINT, &int_, nullptr);
    sigaction(SIGTERM, &term_, nullptr);
  }
  SignalNote(const SignalNote&) = delete;
  SignalNote& operator=(const SignalNote&) = delete;
  /// Returns the signal that has come since the last call, or 0.
  static int take() { return std::exchange(const_cast<std::sig_atomic_t&>(g_signal), 0); }

 private:
  struct sigaction int_ {
  }, term_{};
};

/// Returns this process's command without the option --ranks and its value.
std::vector<std::string> own_command() {
  const std::string text = io::read_text("/proc/self/cmdline");
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    words.emplace_back(text.c_str() + at);
    at += words.back().size() + 1;
  }
  std::vector<std::string> command{
      std::filesystem::read_symlink("/proc/self/exe").string()};  // not by a search of PATH
  for (size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "--ranks") {
      ++i;
      continue;
    }
    if (!words[i].starts_with("--ranks=")) command.push_back(words[i]);
  }
  return command;
}

/// Is a rank's process, and the end of the pipe that has its standard error.
struct Rank {
  int64_t number = 0;
  launch::Child process;
  int errors = -1;
  std::string line{};  // begun, without its end
  bool ended = false;
  launch::ChildEnd end{};
  int64_t ticks = 0;  // of the processor, when it was looked at last
};

/// Starts the ranks, follows them, and ends them.
class Ranks {
 public:
  explicit Ranks(int64_t count) {
    const std::vector<std::string> command = own_command();
    const auto threads = std::max<int64_t>(1, std::thread::hardware_concurrency() / count);
    for (int64_t rank = 0; rank < count; ++rank) {
      std::array<int, 2> pipe{};
      if (pipe2(pipe.data(), O_CLOEXEC) != 0) throw IoError("ranks.start", "a pipe", errno);
      launch::ChildStart start{.name = "rank " + std::to_string(rank), .command = command};
      if (rank > 0) start.out = "/dev/null";
      start.err = "/proc/self/fd/" + std::to_string(pipe[1]);
      start.environment = {{"RANK", std::to_string(rank)},
                           {"WORLD_SIZE", std::to_string(count)},
                           {"LOCAL_RANK", std::to_string(rank)},
                           {"LOCAL_WORLD_SIZE", std::to_string(count)},
                           {"MASTER_ADDR", "127.0.0.1"},
                           {"MASTER_PORT", std::to_string(store_.port())},
                           {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                           {"TARE_RANKS_BY", kStartedBy}};
      if (!std::getenv("OMP_NUM_THREADS"))
        start.environment.emplace_back("OMP_NUM_THREADS", std::to_string(threads));
      all_.push_back({.number = rank, .process = launch::Child(start), .errors = pipe[0]});
      close(pipe[1]);
    }
  }

  int run() {
    const SignalNote signals;
    while (any_left()) {
      wait();
      if (const int signal = SignalNote::take()) {
        passed_on_ = signal;
        computed_at_ = Clock::now();
        send(signal);
      }
      if (passed_on_ != 0 && !stop_at_ && are_idle()) {
        log::error("no rank has computed for " + std::to_string(kIdle.count()) +
                   " s after the signal, so all are stopped; " + kNext);
        code_ = 128 + passed_on_;
        stop_at_ = Clock::now();
      }
      if (stop_at_ && Clock::now() > *stop_at_) stop();
      print_waiting(/*of_all=*/false);
    }
    print_waiting(/*of_all=*/true);
    return code_;
  }

 private:
  struct Waiting {
    Clock::time_point since;
    int64_t rank;
    std::string line;
    int64_t times;  // that the rank has said it
  };

  [[nodiscard]] bool any_left() const {
    return std::ranges::any_of(all_, [](const Rank& rank) { return !rank.ended; });
  }

  void wait() {
    std::vector<pollfd> polled;
    for (Rank& rank : all_) {
      polled.push_back({rank.errors, POLLIN, 0});
      polled.push_back({rank.ended ? -1 : rank.process.descriptor(), POLLIN, 0});
    }
    const int milliseconds = waiting_.empty() ? 200 : 20;
    if (poll(polled.data(), polled.size(), milliseconds) <= 0) return;
    for (size_t i = 0; i < all_.size(); ++i) {
      const bool has_ended = polled[2 * i + 1].revents != 0;
      if (polled[2 * i].revents != 0 || has_ended) read(all_[i]);
      if (has_ended) note_end(all_[i]);
    }
  }

  /// Passes on the lines that a rank has written.
  void read(Rank& rank) {
    if (rank.errors < 0) return;
    std::array<char, 4096> bytes{};
    while (true) {
      pollfd more{rank.errors, POLLIN, 0};
      if (poll(&more, 1, 0) <= 0) return;
      const ssize_t count = ::read(rank.errors, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) {
        close(std::exchange(rank.errors, -1));
        if (!rank.line.empty()) pass_on(rank, std::exchange(rank.line, {}));
        return;
      }
      rank.line.append(bytes.data(), static_cast<size_t>(count));
      for (size_t end = 0; (end = rank.line.find('\n')) != std::string::npos;
           rank.line.erase(0, end + 1))
        pass_on(rank, rank.line.substr(0, end));
    }
  }

  void pass_on(const Rank& rank, const std::string& line) {
    if (said_.size() > kLines) said_.clear();  // a line may then be there twice
    const int64_t times = ++said_[line].times[rank.number];
    waiting_.push_back({Clock::now(), rank.number, line, times});
    if (rank.number == 0) print_waiting(/*of_all=*/false);
  }

  /// Prints lines that the first rank has said, and those of others that have waited for it. A line
  /// that several ranks say is printed once.
  void print_waiting(bool of_all) {
    const auto now = Clock::now();
    std::erase_if(waiting_, [&](const Waiting& one) {
      if (one.rank > 0 && !of_all && now - one.since < kForFirst) return false;
      // Which rank was killed, or what it has said itself, is said already.
      if (killed_ && one.line.find("[ranks]") != std::string::npos) return true;
      if (repeats_another(one)) return true;
      Said& said = said_[one.line];
      if (one.times <= said.passed_on) return true;
      said.passed_on = one.times;
      const std::string from = one.rank > 0 ? "rank " + std::to_string(one.rank) + ": " : "";
      const std::string text = from + one.line + '\n';
      [[maybe_unused]] const auto written = write(STDERR_FILENO, text.data(), text.size());
      return true;
    });
  }

  /// Whether a line says of another rank what that one has said itself.
  [[nodiscard]] bool repeats_another(const Waiting& one) const {
    const std::string_view of_another = " has failed: ";
    const size_t at = one.line.find(of_another);
    if (at == std::string::npos) return false;
    const std::string reason = one.line.substr(at + of_another.size());
    return std::ranges::any_of(said_, [&](const auto& said) {
      return said.first != one.line && said.first.ends_with(reason) &&
             said.first.find(of_another) == std::string::npos;
    });
  }

  void note_end(Rank& rank) {
    rank.end = rank.process.wait();
    rank.ended = true;
    const int code = rank.end.signal != 0 ? 128 + rank.end.signal : rank.end.exit_code;
    // The code of a rank that was asked to end here says nothing.
    if (code == kSuccess || terminated_) return;
    if (code_ == kSuccess || code_ == kFailed) code_ = code;
    if (passed_on_ != 0 && code == 128 + passed_on_) return;  // it has saved, and others still do
    if (rank.end.signal != 0 && !killed_) {
      killed_ = true;
      log::error("rank " + std::to_string(rank.number) + " of " + std::to_string(all_.size()) +
                 " was ended by signal " + std::to_string(rank.end.signal) + " (" +
                 strsignal(rank.end.signal) + "), so the others stop; " + kNext);
    }
    if (!stop_at_) stop_at_ = Clock::now() + kToEnd;
  }

  /// Whether no rank has computed for some time.
  [[nodiscard]] bool are_idle() {
    constexpr int64_t kComputes = 5;  // ticks in a second, of all; ranks that wait have fewer
    int64_t ticks = 0;
    for (const Rank& rank : all_)
      if (!rank.ended) ticks += launch::computed_ticks(rank.process.id().pid);
    const auto now = Clock::now();
    if (std::abs(ticks - ticks_) >= kComputes) computed_at_ = now;
    if (now - ticks_at_ > std::chrono::seconds(1)) {
      ticks_ = ticks;
      ticks_at_ = now;
    }
    return now - computed_at_ > kIdle;
  }

  void send(int signal) {
    for (Rank& rank : all_)
      if (!rank.ended) rank.process.send(signal);
  }

  void stop() {
    const auto now = Clock::now();
    if (!terminated_) {
      send(SIGTERM);
      give_up_at_ = now + kToSave;
    }
    for (Rank& rank : all_) {
      if (rank.ended) continue;
      constexpr int64_t kComputes = 10;  // ticks; a rank that only waits has a few
      const int64_t before =
          std::exchange(rank.ticks, launch::computed_ticks(rank.process.id().pid));
      if (!terminated_ || (now <= give_up_at_ && rank.ticks - before >= kComputes)) continue;
      log::error("rank " + std::to_string(rank.number) + " of " + std::to_string(all_.size()) +
                 " does not end, so it is killed; " + kNext);
      rank.process.send(SIGKILL);
    }
    terminated_ = true;
    stop_at_ = now + kToStop;
  }

  parallel::StoreServer store_;
  std::deque<Rank> all_;
  struct Said {
    std::map<int64_t, int64_t> times{};  // by rank
    int64_t passed_on = 0;
  };
  std::map<std::string, Said> said_;  // by line
  std::deque<Waiting> waiting_;       // whether a lower rank says so too
  bool killed_ = false, terminated_ = false;
  std::optional<Clock::time_point> stop_at_;
  Clock::time_point give_up_at_{};
  int passed_on_ = 0;  // the signal
  int64_t ticks_ = 0;  // of all ranks, as it was at ticks_at_
  Clock::time_point ticks_at_{}, computed_at_{};
  int code_ = kSuccess;
};

/// Returns the only card that this rank sees, where each rank sees one that no other rank sees, as
/// `srun --gpus-per-task=1` starts them. All ranks call it.
std::optional<c10::Device> own_card(parallel::Group& group) {
  const std::vector<c10::Device> devices = memory::devices();  // the host first
  std::string own;
  if (devices.size() == 2)
    if (const auto* collectives = memory::collectives_of(devices.back().type()))
      own = collectives->hardware(devices.back());
  if (!own.empty()) own += host_name();
  const auto all = group.texts(own);
  const std::set<std::string> different(all.begin(), all.end());
  if (different.size() != all.size() || different.contains("")) return std::nullopt;
  return devices.back();
}

/// Returns the device of a rank where the recipe names none, or cards without a number.
std::string device_of(const std::string& wanted, const parallel::World& world,
                      const std::optional<c10::Device>& own_card) {
  if (wanted != "auto" && wanted != "cuda") return wanted;
  const auto cards = static_cast<int64_t>(memory::devices().size()) - 1;  // and the host
  if (cards == 0) return wanted;
  if (own_card) return own_card->str();
  if (world.local_rank < cards) return "cuda:" + std::to_string(world.local_rank);
  throw ConfigError("ranks", "rank " + std::to_string(world.rank) + " is number " +
                                 std::to_string(world.local_rank) +
                                 " of its machine, counted from 0, which has " +
                                 std::to_string(cards) + (cards == 1 ? " card" : " cards") +
                                 ": start as many ranks as there are cards, or set device: cpu");
}

}  // namespace

int run_ranks(int64_t count) { return Ranks(count).run(); }

void let_first_rank_speak() {
  try {
    const parallel::World world = parallel::this_world();
    if (world.rank > 0 && world.started_by != kStartedBy)
      std::this_thread::sleep_for(std::chrono::seconds(2));
  } catch (const ConfigError&) {  // it is no rank that the first one could speak for
  }
}

void refuse_ranks(const std::string& command) {
  const parallel::World world = parallel::this_world();
  if (world.is_alone()) return;
  throw ConfigError(command, "is of one process, and this one is rank " +
                                 std::to_string(world.rank) + " of " + std::to_string(world.size) +
                                 ", which " + world.started_by + " has started: start it alone");
}

std::shared_ptr<parallel::Group> join_ranks(RecipeOptions& recipe, const std::string& settings,
                                            const parallel::GroupOptions& options) {
  const parallel::World world = parallel::this_world();
  if (world.is_alone()) return nullptr;
  auto group = std::make_shared<parallel::Group>(world, options);
  try {
    const std::string own = config::to_yaml(config::to_node(recipe)) + settings;
    group->require_equal(content_hash(std::as_bytes(std::span(own))),
                         "has another recipe than rank 0, or other options: start all ranks with "
                         "one recipe and the same settings");
    check_ranks(recipe, world.size);
    recipe.learner.device = device_of(recipe.learner.device, world, own_card(*group));
    group->exchange_on(runtime::open_device(recipe.learner.device));
  } catch (...) {
    group->fail(std::current_exception());
    throw;
  }
  return group;
}

}  // namespace tare::cli
