// Search repeats work in smaller pieces while memory is out, and remembers the sizes that fit.
#include "tare/adapt/search.h"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <map>
#include <mutex>
#include <new>
#include <ranges>
#include <unordered_map>

#include "tare/adapt/size_cache.h"
#include "tare/base/error.h"
#include "tare/base/immortal.h"
#include "tare/memory/call_stack.h"
#include "tare/memory/host_allocator.h"

namespace tare::adapt {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kFreeMemoryAge(100);
constexpr size_t kMaxPath = 4096;
constexpr int64_t kSegment = 20 << 20;  // of CUDA's caching allocator

std::atomic<Cache> process_default{Cache::stack};

/// Returns what tensors can still take on a device.
int64_t free_bytes(c10::Device device) {
  const auto& backend = memory::backend(device);
  const int64_t available = backend.memory_info().available_bytes;
  const auto budget = backend.budget();
  return budget ? std::min(available, *budget - backend.usage().allocated_bytes) : available;
}

/// Returns what tensors can still take in the allocator's cache and beside it.
int64_t bytes_left_on(c10::Device device) {
  const auto& backend = memory::backend(device);
  const memory::Usage usage = backend.usage();
  return free_bytes(device) +
         (backend.budget() ? 0 : usage.reserved_bytes - usage.allocated_bytes);
}

/// Returns the free bytes without asking the system each time, which takes longer than a small
/// piece: a host's budget is counted, other figures may be kFreeMemoryAge old.
int64_t recent_free_bytes(c10::Device device) {
  if (device.is_cpu()) {
    if (const auto budget = memory::host_allocator::budget())
      return *budget - memory::host_allocator::counters().live_bytes;
  }
  struct Reading {
    Clock::time_point time{};
    int64_t bytes = 0;
  };
  static Immortal<std::map<c10::DeviceIndex, Reading>> readings;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  auto& reading = (*readings)[device.is_cpu() ? -1 : device.index()];
  const auto now = Clock::now();
  if (reading.time == Clock::time_point{} || now - reading.time > kFreeMemoryAge)
    reading = {now, free_bytes(device)};
  return reading.bytes;
}

/// Returns the bucket of a size: four for each doubling.
int bucket(int64_t bytes) {
  return static_cast<int>(4 * std::log2(static_cast<double>(std::max<int64_t>(bytes, 1))));
}

/// Returns the places of a stack's return addresses in the files they were loaded from, which
/// another process of this program has too.
uint64_t fingerprint_of(uint32_t stack) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, over numbers
  for (void* address : memory::addresses_of(stack)) {
    Dl_info info{};
    const bool known = dladdr(address, &info) != 0;
    const auto base = reinterpret_cast<uintptr_t>(known ? info.dli_fbase : nullptr);
    hash = (hash ^ (reinterpret_cast<uintptr_t>(address) - base)) * 0x100000001b3;
  }
  return hash;
}

/// Returns a word for the stack, empty if stacks cannot be gathered: then the line of code answers
/// alone.
std::string stack_word() {
  const uint32_t number = memory::gather_stack();
  if (number == 0) return {};
  static Immortal<std::unordered_map<uint32_t, std::string>> words;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const auto [known, is_new] = words->try_emplace(number);
  if (is_new) {
    std::array<char, 24> text{};
    const auto end =
        std::to_chars(text.data(), text.data() + text.size(), fingerprint_of(number), 16).ptr;
    known->second = " stack=" + std::string(text.data(), end);
  }
  return known->second;
}

bool holds_memory(const Argument& argument) {
  return argument.tensor && argument.tensor->defined() && !argument.tensor->is_meta();
}

void append_shape(std::string& key, const Argument& argument) {
  const at::Tensor& tensor = *argument.tensor;
  key += ' ';
  if (!tensor.defined()) {
    key += '-';
    return;
  }
  key += c10::toString(tensor.scalar_type());
  for (int64_t d = 0; d < tensor.dim(); ++d)
    key += d == argument.batch_dim ? "x*" : 'x' + std::to_string(tensor.size(d));
}

void add_device(std::vector<c10::Device>& devices, c10::Device device) {
  if (std::ranges::find(devices, device) == devices.end()) devices.push_back(device);
}

std::string key_of(Cache cache, const CodeLine& site, std::span<const Argument> arguments) {
  std::string key = printable(site.file, kMaxPath) + ':' + std::to_string(site.line);
  if (cache == Cache::call) return key;
  if (cache == Cache::stack) key += stack_word();
  std::vector<c10::Device> devices;
  for (const Argument& argument : arguments) {
    if (!argument.tensor) continue;
    append_shape(key, argument);
    if (holds_memory(argument)) add_device(devices, argument.tensor->device());
  }
  if (devices.empty()) devices = memory::devices();
  for (const c10::Device device : devices)
    key += ' ' + device.str() + '@' + std::to_string(bucket(recent_free_bytes(device)));
  return key;
}

/// Returns the device on which the work is most likely done: that of the last tensor, else a card
/// if there is one.
c10::Device device_of(std::span<const Argument> arguments) {
  const auto last = std::find_if(arguments.rbegin(), arguments.rend(), holds_memory);
  if (last != arguments.rend()) return last->tensor->device();
  const auto devices = memory::devices();
  return devices.size() > 1 ? devices[1] : c10::Device(c10::kCPU);
}

StepSize first_step(int64_t initial, const Options& options) {
  StepSize step(initial, options.policy, "adapt");
  if (options.start > 0) step.start_at(options.start);
  return step;
}

}  // namespace

const char* to_string(Cache cache) {
  switch (cache) {
    case Cache::none:
      return "none";
    case Cache::call:
      return "call";
    case Cache::shapes:
      return "shapes";
    case Cache::stack:
      return "stack";
  }
  return "?";
}

Cache default_cache() { return process_default; }
void set_default_cache(Cache cache) { process_default = cache; }

NothingFits::NothingFits(const OutOfMemory& last, std::vector<int64_t> tried)
    : OutOfMemory(last), tried_(std::move(tried)) {}

Search::Search(int64_t initial, const Options& options, const CodeLine& site,
               std::span<const Argument> arguments)
    : options_(options), cache_(nullptr), step_(first_step(initial, options)) {
  device_ = device_of(arguments);
  found_ = options.start > 0;
  const Cache kind = options.cache.value_or(default_cache());
  if (kind == Cache::none) return;
  cache_ = &sizes();
  key_ = key_of(kind, site, arguments);
  step_ = cache_->resume(key_, step_);
}

Search::Search(int64_t initial, const Options& options, SizeCache& cache, std::string key,
               c10::Device device)
    : options_(options),
      cache_(&cache),
      key_(std::move(key)),
      device_(device),
      step_(cache.resume(key_, first_step(initial, options))),
      found_(options.start > 0) {
  remember();
}

Search::~Search() {
  try {
    remember();
  } catch (const std::bad_alloc&) {  // the next call starts anew
  }
}

int64_t Search::piece(int64_t most) const {
  const int64_t size = step_.get();
  if (size >= most) return most;
  return options_.policy.even ? even_size(most, size) : size;
}

void Search::remember() const {
  if (cache_) cache_->store(key_, step_);
}

Search::Interval::Interval(Search& search, int64_t size)
    : search_(search), size_(size), retries_(memory::backend(search.device_).retries()) {
  if (search.step_.shrunken()) peak_.emplace(search.device_);
}

void Search::Interval::close() {
  const auto& backend = memory::backend(search_.device_);
  if (backend.retries() > retries_) {
    if (++search_.pressed_ == 2) search_.relieve(size_);
    return;  // not a clean attempt
  }
  search_.pressed_ = 0;
  if (peak_) search_.count(size_, *peak_);
}

// Only what was shrunken can grow again.
void Search::count(int64_t size, const memory::PeakScope& peak) {
  step_.clean(size, std::max<int64_t>(0, peak.peak_above_start_bytes() - options_.fixed_bytes));
  const bool bounded = found_ && !device_.is_cpu();
  if (bounded && !left_) left_ = bytes_left_on(device_);
  if (!step_.due()) return;
  const int64_t from = step_.get();
  // Of what the piece has left, only the fixed bytes are gone before the next one.
  const int64_t left = memory::backend(device_).usage().allocated_bytes - peak.start_bytes();
  const int64_t passing = std::min(left, options_.fixed_bytes);
  const bool may = !bounded || bytes_left_on(device_) > *left_ + kSegment;
  if (!step_.grow(may ? free_bytes(device_) + passing - options_.fixed_bytes : 0)) return;
  note_found(false);
  relieves_ = true;
  remember();
  report(from, {});
}

void Search::note_found(bool found) {
  found_ = found;
  left_.reset();
}

void Search::relieve(int64_t size) {
  pressed_ = 0;
  if (!std::exchange(relieves_, false)) return;
  const int64_t from = step_.get();
  const auto next = options_.suggest ? options_.suggest(size) : std::optional(size);
  if (!next || !step_.shrink(size, *next)) return;
  note_found(options_.suggest != nullptr);
  remember();
  report(from, "the allocator of " + device_.str() +
                   " had to return its cache in two consecutive attempts");
}

memory::OutOfMemoryInfo Search::require_out_of_memory(const std::exception_ptr& error) {
  auto info = memory::classify(error);
  if (!info) std::rethrow_exception(error);
  return std::move(*info);
}

void Search::shrink(int64_t size, const memory::OutOfMemoryInfo& info,
                    const std::exception_ptr& error) {
  failed_.push_back(size);
  const int64_t from = step_.get();
  std::optional<int64_t> suggested;
  if (options_.suggest) suggested = options_.suggest(size);
  if (!step_.shrink(size, suggested.value_or(size))) give_up(info, error);
  note_found(suggested.has_value());
  remember();
  report(from, info.message);
}

void Search::give_up(const memory::OutOfMemoryInfo& info, const std::exception_ptr& error) const {
  if (!info.certain) std::rethrow_exception(error);  // no smaller size has worked
  std::vector<std::string> tried;
  for (const int64_t size : failed_) tried.push_back(std::to_string(size));
  std::string advice = "not even the smallest part fits (sizes that failed: " + listed(tried) +
                       "): raise the budget or the limit, or make the work itself smaller";
  try {
    std::rethrow_exception(error);
  } catch (const OutOfMemory& last) {
    std::throw_with_nested(NothingFits(last.with_advice(std::move(advice)), failed_));
  } catch (...) {
    const auto& backend = memory::backend(device_);
    std::throw_with_nested(NothingFits(
        OutOfMemory(device_, info.asked_bytes.value_or(0), backend.usage().allocated_bytes,
                    backend.budget(), std::move(advice)),
        failed_));
  }
}

void Search::recover(c10::Device device) {
  memory::flush_ready_queue();
  memory::backend(device).reclaim();
}

void Search::report(int64_t from, std::string reason) const {
  if (options_.on_change) options_.on_change({from, step_.get(), std::move(reason)});
}

}  // namespace tare::adapt
