// Keeps the sizes that were found, and hands them to the next process in a file.
#include "tare/adapt/size_cache.h"

#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "tare/base/error.h"
#include "tare/base/immortal.h"
#include "tare/base/io.h"

namespace tare::adapt {
namespace {

constexpr const char* kOperation = "adapt.sizes";
constexpr std::string_view kTitle = "tare step sizes 1";

/// Parses "16 train.cpp:12:3 ..."; unset for any other text.
std::optional<FoundSize> parse(std::string_view text) {
  FoundSize line;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), line.size);
  const auto rest = text.substr(static_cast<size_t>(end - text.data()));
  if (error != std::errc() || line.size < 1 || rest.size() < 2 || rest[0] != ' ') return {};
  line.key = rest.substr(1);
  return line;
}

}  // namespace

StepSize SizeCache::resume(const std::string& key, StepSize fresh) {
  const std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return fresh;
  newest_first_.splice(newest_first_.begin(), newest_first_, found->second);
  const Entry& entry = *found->second;
  if (!entry.loaded && entry.size.same_rules(fresh)) return entry.size;
  fresh.start_at(entry.size.get());
  return fresh;
}

void SizeCache::store(const std::string& key, const StepSize& size) {
  const std::lock_guard lock(mutex_);
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    found->second->size = size;
    found->second->loaded = false;
  } else if (size.shrunken()) {
    put({.key = key, .size = size});
  }
}

void SizeCache::put(Entry entry) {
  if (capacity_ == 0) return;
  newest_first_.push_front(std::move(entry));
  by_key_.emplace(newest_first_.front().key, newest_first_.begin());
  if (newest_first_.size() <= capacity_) return;
  by_key_.erase(newest_first_.back().key);
  newest_first_.pop_back();
}

size_t SizeCache::entries() const {
  const std::lock_guard lock(mutex_);
  return newest_first_.size();
}

void SizeCache::clear() {
  const std::lock_guard lock(mutex_);
  by_key_.clear();
  newest_first_.clear();
}

std::vector<FoundSize> SizeCache::found() const {
  const std::lock_guard lock(mutex_);
  std::vector<FoundSize> all;
  all.reserve(newest_first_.size());
  for (const Entry& entry : newest_first_) all.push_back({entry.key, entry.size.get()});
  return all;
}

void SizeCache::add(const std::vector<FoundSize>& sizes) {
  const std::lock_guard lock(mutex_);
  for (auto found = sizes.rbegin(); found != sizes.rend(); ++found) {
    if (by_key_.contains(found->key)) continue;
    put({.key = found->key, .size = StepSize(found->size, {}, kOperation), .loaded = true});
  }
}

void SizeCache::save(const std::filesystem::path& file) const {
  std::string text(kTitle);
  for (const auto& [key, size] : found()) text += '\n' + std::to_string(size) + ' ' + key;
  io::write_atomically(file, text + '\n');
}

void SizeCache::load(const std::filesystem::path& file) {
  const std::string text = io::read_text(file);
  std::vector<FoundSize> lines;
  int64_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const auto words = std::string_view(text).substr(at, end - at);
    at = end + 1;
    const auto fail = [&, line = ++number](const char* problem) {
      throw FormatError(kOperation, file.string(), "line " + std::to_string(line), problem);
    };
    if (number == 1) {
      if (words != kTitle) fail("is not the title of a size cache");
      continue;
    }
    auto line = parse(words);
    if (!line) fail("is not a size and its key");
    lines.push_back(std::move(*line));
  }
  if (number == 0) throw FormatError(kOperation, file.string(), "line 1", "is missing");
  add(lines);
}

SizeCache& sizes() {
  static Immortal<SizeCache> all;
  return *all;
}

}  // namespace tare::adapt
