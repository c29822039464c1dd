// Compares what holds memory with the lines before, and prints the changes.
#include "tare/recipe/memory_monitor.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <ostream>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/time_text.h"
#include "tare/cuda/nvml.h"
#include "tare/memory/backend.h"
#include "tare/memory/call_site.h"
#include "tare/memory/call_stack.h"
#include "tare/memory/machine.h"
#include "tare/memory/phase.h"

namespace tare {
namespace {

/// Some live blocks.
struct Held {
  int64_t bytes = 0, blocks = 0;
  void add(const Held& more) {
    bytes += more.bytes;
    blocks += more.blocks;
  }
};
using Holders = std::map<std::string, Held>;

/// Where blocks come from. The device is an index into Tracer::devices_.
struct Origin {
  size_t device = 0;
  uint32_t phase = 0, stack = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): the linter means the 0 of the generated comparison.
  friend auto operator<=>(const Origin&, const Origin&) = default;
};
using Origins = std::map<Origin, Held>;

struct Change {
  std::string name;
  Held now, before;
  [[nodiscard]] int64_t bytes() const { return now.bytes - before.bytes; }
  [[nodiscard]] int64_t blocks() const { return now.blocks - before.blocks; }
};

/// Returns what has changed, most bytes first.
std::vector<Change> changes(const Holders& now, const Holders& before) {
  std::map<std::string, Change> all;
  for (const auto& entry : now) all[entry.first].now = entry.second;
  for (const auto& entry : before) all[entry.first].before = entry.second;
  std::vector<Change> list;
  for (auto& entry : all) {
    entry.second.name = entry.first;
    if (entry.second.bytes() != 0 || entry.second.blocks() != 0) list.push_back(entry.second);
  }
  const auto rank = [](const Change& change) {
    return std::tuple(std::abs(change.bytes()), std::abs(change.blocks()), change.now.bytes);
  };
  std::ranges::stable_sort(list, std::greater{}, rank);
  return list;
}

/// Returns the holders, those of the most bytes first.
template <class Key>
std::vector<std::pair<Key, Held>> by_size(const std::map<Key, Held>& holders) {
  std::vector<std::pair<Key, Held>> list(holders.begin(), holders.end());
  std::ranges::stable_sort(list, std::greater{}, [](const auto& entry) {
    return std::tuple(entry.second.bytes, entry.second.blocks);
  });
  return list;
}

std::string average(const Held& held) {
  return held.blocks == 0 ? "" : ", average=" + format_count(held.bytes / held.blocks) + " B";
}

std::string text_of(const Held& held) {
  return "size=" + format_count(held.bytes) + " B, count=" + format_count(held.blocks) +
         average(held);
}

std::string with_sign(int64_t count) { return (count < 0 ? "" : "+") + format_count(count); }

std::string text_of(const Change& change) {
  return "size=" + format_count(change.now.bytes) + " B (" + with_sign(change.bytes()) +
         " B), count=" + format_count(change.now.blocks) + " (" + with_sign(change.blocks()) + ')' +
         average(change.now);
}

std::string mib(int64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

std::string percent(double share) { return std::to_string(std::lround(100 * share)) + " %"; }

/// Returns the line of a card, with "-" for what the driver does not report.
std::string gpu_line(const cuda::NvmlDevice& card, size_t id) {
  const auto memory = card.memory();
  const auto load = card.utilisation();
  const auto degrees = card.temperature();
  const bool known = memory && memory->total_bytes > 0;
  return "gpu_stats id=" + std::to_string(id) + ", name=" + printable(card.name()) +
         ", mem_used=" + (known ? mib(memory->used_bytes) : "-") +
         ", mem_total=" + (known ? mib(memory->total_bytes) : "-") + ", mem_util=" +
         (known ? percent(static_cast<double>(memory->used_bytes) /
                          static_cast<double>(memory->total_bytes))
                : "-") +
         ", volatile_gpu=" + (load ? percent(*load) : "-") +
         ", temp=" + (degrees ? std::to_string(*degrees) + " C" : "-");
}

std::string host_line() {
  const auto machine = memory::machine_memory();
  return "host_stats resident=" + mib(memory::resident_bytes()) +
         ", mem_available=" + mib(machine.available_bytes) +
         ", mem_total=" + mib(machine.total_bytes);
}

}  // namespace

/// Prints from a thread. Once the thread is running, whoever prints holds the mutex, which guards
/// all that is not constant.
class MemoryMonitor::Tracer {
 public:
  Tracer(const report::MemoryMonitorOptions& options, std::ostream& out)
      : options_(options), out_(out), devices_(memory::devices()) {
    const auto now = origins();
    start_ = by_phase(now);
    before_ = by_site(now);
    print("Start");
    thread_ = std::thread([this] { follow(); });
  }
  ~Tracer() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    thread_.join();
    print("End");
  }
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  void snapshot(const std::string& title) {
    const std::lock_guard lock(mutex_);
    print(title);
  }

 private:
  void follow() {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, std::chrono::seconds(options_.interval_s),
                           [this] { return stopping_; }))
      print("Snapshot");
  }

  /// Prints the lines, or nothing if there is no memory for them.
  void print(const std::string& title) noexcept {
    try {
      text_.clear();
      line("------ " + printable(title) + " ------");
      add_sections();
      out_.write(text_.data(), static_cast<std::streamsize>(text_.size()));
      out_.flush();
    } catch (const std::bad_alloc&) {
      text_.clear();
    }
  }

  void add_sections() {
    const Origins now = origins();
    Holders phases = by_phase(now), sites = by_site(now);
    line("GPU Stats");
    add_stats(now);
    line("Top Diffs since Start");
    add_top("top_diffs", changes(phases, start_));
    line("Top Incremental");
    add_top("top_incremental", changes(sites, before_));
    line("Top Current");
    size_t place = 0;
    for (const auto& holder : first(by_size(sites), options_.top))
      line("top_current i=" + std::to_string(++place) + ", stat=" + holder.first + ": " +
           text_of(holder.second));
    add_stacks(now);
    before_ = std::move(sites);
  }

  void add_stats(const Origins& now) {
    size_t id = 0;
    for (const auto& card : cuda::NvmlDevice::all()) line(gpu_line(card, id++));
    line(host_line());
    Holders all;
    for (const auto& entry : now) all[devices_[entry.first.device].str()].add(entry.second);
    for (const auto& device : all)
      line("tensors device=" + device.first + ", " + text_of(device.second));
  }

  void add_top(const std::string& word, const std::vector<Change>& list) {
    size_t place = 0;
    for (const auto& change : first(list, options_.top))
      line(word + " i=" + std::to_string(++place) + ", stat=" + change.name + ": " +
           text_of(change));
  }

  void add_stacks(const Origins& now) {
    for (const auto& origin : first(by_size(now), options_.trace)) {
      line("traceback memory_blocks=" + std::to_string(origin.second.blocks) + ", size_kB=" +
           std::to_string(origin.second.bytes / 1024) + ", " + phase_of(origin.first));
      const auto frames = memory::frames_from_site(origin.first.stack);
      if (frames.empty()) line("  no call stack");
      for (const auto& frame : frames)
        line("  " + memory::CallSite{frame.function, frame.file, frame.line}.str());
    }
  }

  void line(const std::string& text) {
    text_ += exact_time_text(std::chrono::system_clock::now()) + ": " + options_.tag + "] " + text +
             '\n';
  }

  /// The allocator copies its list of blocks under the lock that every allocation takes, so the
  /// training may continue meanwhile. Nothing else of it is read: ledgers are its own thread's.
  [[nodiscard]] Origins origins() const {
    Origins all;
    for (size_t i = 0; i < devices_.size(); ++i)
      for (const auto& block : memory::backend(devices_[i]).live_blocks())
        all[{i, block.phase, block.stack}].add({block.bytes, 1});
    return all;
  }

  [[nodiscard]] std::string phase_of(const Origin& origin) const {
    return devices_[origin.device].str() + ", phase " + printable(memory::phase_name(origin.phase));
  }

  [[nodiscard]] Holders by_phase(const Origins& now) const {
    Holders all;
    for (const auto& entry : now) all[phase_of(entry.first)].add(entry.second);
    return all;
  }

  [[nodiscard]] Holders by_site(const Origins& now) {
    Holders all;
    for (const auto& entry : now)
      all[phase_of(entry.first) + ", " + site_of(entry.first.stack)].add(entry.second);
    return all;
  }

  const std::string& site_of(uint32_t stack) {
    const auto [known, is_new] = sites_.try_emplace(stack);
    if (is_new) known->second = stack == 0 ? "unknown" : memory::site_of(stack).str();
    return known->second;
  }

  template <class T>
  static std::vector<T> first(std::vector<T> list, int64_t count) {
    if (list.size() > static_cast<size_t>(count)) list.resize(static_cast<size_t>(count));
    return list;
  }

  const memory::CallSites call_sites_;
  const report::MemoryMonitorOptions options_;
  std::ostream& out_;
  const std::vector<c10::Device> devices_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  Holders start_, before_;  // by phase; by site
  std::unordered_map<uint32_t, std::string> sites_;
  std::string text_;
  std::thread thread_;
};

MemoryMonitor::MemoryMonitor(const report::MemoryMonitorOptions& options, std::ostream& out) {
  if (options.enabled) tracer_ = std::make_unique<Tracer>(options, out);
}

MemoryMonitor::~MemoryMonitor() = default;

void MemoryMonitor::snapshot(const std::string& title) {
  if (tracer_) tracer_->snapshot(title);
}

}  // namespace tare
