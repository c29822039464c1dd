// Weighs a stage of work, frees what it made and finds its leaks.
#include "tare/experiment/experiment.h"

#include <ATen/autocast_mode.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <map>
#include <ostream>
#include <sstream>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/base/terminal.h"
#include "tare/memory/oom.h"
#include "tare/memory/phase.h"

namespace tare {
namespace {

memory::DeviceBackend& warmed(c10::Device device) {
  auto& backend = memory::backend(device);
  backend.warm();
  backend.reclaim();
  return backend;
}

MemoryFigures operator-(const memory::Usage& a, const memory::Usage& b) {
  return {a.allocated_bytes - b.allocated_bytes, a.reserved_bytes - b.reserved_bytes,
          a.process_bytes - b.process_bytes, a.pinned_bytes - b.pinned_bytes};
}

MemoryFigures operator-(const MemoryFigures& a, const MemoryFigures& b) {
  return {a.allocated_bytes - b.allocated_bytes, a.reserved_bytes - b.reserved_bytes,
          a.process_bytes - b.process_bytes, a.pinned_bytes - b.pinned_bytes};
}

bool lives(const Accountable* object, uint64_t id) {
  return std::ranges::any_of(Accountable::living(), [=](const Accountable* living) {
    return living == object && living->account_id() == id;
  });
}

/// Frees memory that no object holds: tasks of a backward that threw, half-precision copies of
/// weights.
void drop_library_leftovers() {
  at::autocast::clear_cache();
  memory::flush_ready_queue();
}

/// Blocks by phase and call site.
using Origins = std::map<std::pair<uint32_t, memory::CallSite>, LeakReport>;

/// Blocks come in order of birth, the oldest first.
void count(const memory::LiveBlock& block, bool call_sites, Origins& by_origin) {
  const bool located = call_sites && block.stack != 0;
  const auto site = located ? memory::site_of(block.stack) : memory::CallSite{};
  auto& leak = by_origin[{block.phase, site}];
  const int64_t age = memory::current_step() - block.step;
  leak.youngest_steps = age;
  leak.oldest_steps = std::max(leak.oldest_steps, age);
  leak.bytes += block.bytes;
  ++leak.count;
}

void append(const Origins& by_origin, c10::Device device, std::vector<LeakReport>& reports) {
  for (const auto& [origin, leak] : by_origin) {
    reports.push_back(leak);
    reports.back().device = device;
    reports.back().phase = memory::phase_name(origin.first);
    reports.back().site = origin.second;
  }
}

ReleasedObject purge(Accountable& object, const PurgeOptions& options) {
  ReleasedObject released;
  released.name = object.account_name();
  try {
    released.freed = object.purge_account(options).freed;
  } catch (const Error& error) {
    released.problem = error.what();
  } catch (const c10::Error& error) {
    released.problem = printable(error.what_without_backtrace());
  }
  return released;
}

}  // namespace

Experiment::DeviceBaseline::DeviceBaseline(c10::Device device)
    : backend(warmed(device)),
      start(backend.usage()),
      mark(backend.sequence()),
      peak(backend.device()) {}

DeviceReport Experiment::DeviceBaseline::read() const {
  DeviceReport side;
  side.device = backend.device();
  side.name = backend.name();
  const memory::Usage now = backend.usage();
  side.consumed = now - start;
  side.fragmented_bytes = now.fragmented_bytes;
  side.retries = now.retries - start.retries;
  side.peak_bytes = peak.peak_above_start_bytes();
  side.available_bytes = backend.memory_info().available_bytes;
  return side;
}

Experiment::Experiment(std::string name, ExperimentOptions options)
    : Experiment(std::move(name), {}, std::move(options)) {}

Experiment::Experiment(std::string name, Accountable& attended, ExperimentOptions options)
    : Experiment(std::move(name), {std::ref(attended)}, std::move(options)) {}

Experiment::Experiment(std::string name,
                       std::initializer_list<std::reference_wrapper<Accountable>> attended,
                       ExperimentOptions options)
    : name_(std::move(name)), options_(std::move(options)) {
  if (options_.enabled) {
    const auto devices =
        options_.devices.empty() ? std::vector<c10::Device>{c10::kCPU} : options_.devices;
    for (const auto device : devices) start_measuring(device);
  }
  for (auto& object : attended) attend(object);
  if (options_.enabled && options_.out) print_banner();
  if (options_.enabled && options_.call_sites) call_sites_.emplace();
  begin_ = std::chrono::steady_clock::now();
}

Experiment::~Experiment() {
  try {
    if (!finished()) {
      const auto report = finish();
      if (report.enabled && options_.out) *options_.out << report << std::flush;
    }
    warn_of_leaked_with_kept();
  } catch (const c10::AcceleratorError& error) {
    // The error of a lost card, while it unwinds, makes every call to the card fail again.
    if (std::uncaught_exceptions() == 0)
      log::error("[experiment] finishing at the end of the scope failed: " +
                 printable(error.what_without_backtrace()) + "; call finish() to handle it");
  } catch (...) {  // a destructor must not throw
    log::error("[experiment] finishing at the end of the scope failed; call finish() to see why");
  }
}

void Experiment::start_measuring(c10::Device device) {
  const auto canonical = memory::backend(device).device();
  const bool known = std::ranges::any_of(
      baselines_, [=](const auto& baseline) { return baseline->backend.device() == canonical; });
  if (!known) baselines_.push_back(std::make_unique<DeviceBaseline>(canonical));
}

void Experiment::print_banner() const {
  std::ostringstream line;
  line << "Experiment '" << name_ << "' on";
  for (size_t i = 0; i < baselines_.size(); ++i) {
    const auto& backend = baselines_[i]->backend;
    const auto info = backend.memory_info();
    line << (i ? ", " : " ") << backend.device() << " (" << backend.name() << ", "
         << format_bytes(info.available_bytes) << " of " << format_bytes(info.total_bytes)
         << " available)";
  }
  *options_.out << fitted(line.str(), *options_.out) << "\n" << std::flush;
}

void Experiment::check_new_name(const std::string& owned_name) const {
  if (finished()) throw StateError("experiment.emplace", "after finish()", "make a new Experiment");
  if (std::ranges::any_of(owned_, [&](const Owned& owned) { return owned.name == owned_name; }))
    throw ConfigError("experiment.emplace",
                      "the name '" + printable(owned_name) + "' is taken; use another");
}

Experiment::Marks Experiment::marks() const {
  Marks marks;
  for (const auto& baseline : baselines_) marks.push_back(baseline->backend.sequence());
  return marks;
}

void Experiment::attend(Accountable& object) {
  if (finished()) throw StateError("experiment.attend", "after finish()", "make a new Experiment");
  attended_.push_back({&object, object.account_id()});
  if (!options_.enabled || !options_.devices.empty()) return;
  const Ledger ledger = object.ledger();
  for (const auto& entry : ledger.entries()) start_measuring(entry.device);
}

void Experiment::keep(const at::Tensor& tensor) {
  if (finished()) throw StateError("experiment.keep", "after finish()", "call it before finish()");
  if (!tensor.defined() || !tensor.has_storage()) return;
  const void* data = tensor.storage().data();
  for (const auto& baseline : baselines_) {
    if (baseline->backend.device() != tensor.device()) continue;
    for (const auto& block : baseline->backend.live_blocks(baseline->mark))
      if (block.data == data)
        kept_blocks_.push_back({{tensor.device(), block.sequence}, c10::str(tensor.sizes())});
  }
}

void Experiment::keep(const std::string& owned_name) {
  if (finished()) throw StateError("experiment.keep", "after finish()", "call it before finish()");
  const auto owned = std::ranges::find(owned_, owned_name, &Owned::name);
  if (owned == owned_.end())
    throw ConfigError("experiment.keep",
                      "no owned object '" + printable(owned_name) + "'; emplace it first");
  owned->kept = true;
}

std::vector<DeviceReport> Experiment::data() const {
  if (report_) return report_->devices;
  std::vector<DeviceReport> sides;
  for (const auto& baseline : baselines_) sides.push_back(baseline->read());
  return sides;
}

ExperimentReport Experiment::finish() {
  if (report_) return *report_;
  ExperimentReport report;
  report.name = name_;
  report.enabled = options_.enabled;
  if (options_.enabled) {
    freeze(report);
    purge_attended(report);
  }
  destroy_owned(report);
  if (options_.enabled) {
    reclaim(report);
    call_sites_.reset();
    find_leaks(report);
    baselines_.clear();
  } else {
    report.released.clear();
    report.kept.clear();
  }
  report_ = std::move(report);
  return *report_;
}

void Experiment::freeze(ExperimentReport& report) const {
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  report.devices = data();
}

void Experiment::purge_attended(ExperimentReport& report) const {
  const memory::Phase phase(memory::PhaseKind::purge);
  for (const auto& [object, id] : attended_)
    if (lives(object, id)) report.released.push_back(purge(*object, options_.purge));
}

void Experiment::destroy_owned(ExperimentReport& report) {
  for (auto owned = owned_.rbegin(); owned != owned_.rend(); ++owned) {
    if (owned->kept) {
      report.kept.push_back(owned->name);
      continue;
    }
    owned->object.reset();
    report.released.push_back({owned->name, {}, {}});
  }
}

void Experiment::reclaim(ExperimentReport& report) const {
  drop_library_leftovers();
  for (size_t i = 0; i < baselines_.size(); ++i) {
    auto& backend = baselines_[i]->backend;
    backend.reclaim();
    auto& side = report.devices[i];
    side.reclaimed = side.consumed - (backend.usage() - baselines_[i]->start);
    side.available_bytes = backend.memory_info().available_bytes;
  }
}

Ledger Experiment::answered() const {
  Ledger all = Accountable::living_ledger();
  for (const auto& owned : owned_)
    if (owned.kept && owned.account) owned.account(all);
  return all;
}

void Experiment::find_leaks(ExperimentReport& report) {
  const Ledger known = answered();
  for (size_t i = 0; i < baselines_.size(); ++i) {
    const auto& baseline = *baselines_[i];
    const auto device = baseline.backend.device();
    Origins leaked, perhaps;
    std::vector<uint64_t> numbers;
    for (const auto& block : baseline.backend.live_blocks(baseline.mark)) {
      if (list_kept(i, block, report) || known.contains(block.data) || kept(i, block)) continue;
      const bool is_unclear = unclear(i, block);
      if (is_unclear) numbers.push_back(block.sequence);
      count(block, options_.call_sites, is_unclear ? perhaps : leaked);
    }
    append(leaked, device, report.leaks);
    append(perhaps, device, report.unclear);
    if (!numbers.empty()) unclear_blocks_.emplace_back(device, std::move(numbers));
  }
  std::ranges::stable_sort(report.leaks, std::greater{}, &LeakReport::bytes);
  std::ranges::stable_sort(report.unclear, std::greater{}, &LeakReport::bytes);
  if (report.unclear.empty()) return;
  for (const auto& owned : owned_)
    if (owned.kept && !owned.account) report.opaque.push_back(owned.name);
}

bool Experiment::list_kept(size_t baseline, const memory::LiveBlock& block,
                           ExperimentReport& report) const {
  const Block key(baselines_[baseline]->backend.device(), block.sequence);
  const auto found = std::ranges::find(kept_blocks_, key, &KeptBlock::block);
  if (found == kept_blocks_.end()) return false;
  report.kept.push_back("tensor " + found->sizes + " (" + format_bytes(block.bytes) + " on " +
                        key.first.str() + ")");
  return true;
}

bool Experiment::kept(size_t baseline, const memory::LiveBlock& block) const {
  return std::ranges::any_of(owned_, [&](const Owned& owned) {
    return owned.kept && baseline < owned.first.size() && block.sequence > owned.first[baseline] &&
           block.sequence <= owned.last[baseline];
  });
}

bool Experiment::unclear(size_t baseline, const memory::LiveBlock& block) const {
  return std::ranges::any_of(owned_, [&](const Owned& owned) {
    const bool later = baseline >= owned.last.size() || block.sequence > owned.last[baseline];
    return owned.kept && !owned.account && later;
  });
}

void Experiment::warn_of_leaked_with_kept() {
  if (unclear_blocks_.empty()) return;
  owned_.clear();
  int64_t bytes = 0;
  for (const auto& [device, numbers] : unclear_blocks_)
    for (const auto& block : memory::backend(device).live_blocks(numbers.front() - 1))
      if (std::ranges::binary_search(numbers, block.sequence)) bytes += block.bytes;
  if (bytes > 0)
    log::warning("[experiment] '" + printable(name_) + "' leaked " + format_bytes(bytes) +
                 " of what was unclear in its report: its kept objects are destroyed now");
}

}  // namespace tare
