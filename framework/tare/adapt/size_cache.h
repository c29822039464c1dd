// SizeCache: the sizes that were found, by the place and the circumstances they were found in.
#pragma once

#include <cstddef>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tare/adapt/step_size.h"

namespace tare::adapt {

/// Holds a size, and what it was found for.
struct FoundSize {
  std::string key{};  ///< what distinguishes calls: line, shapes, devices, as described at Cache
  int64_t size = 0;   ///< samples of one interval, >= 1
};

/// Holds the newest `capacity` sizes; the one not used for longest goes first. Only sizes that were
/// shrunken are worth an entry. Thread-safe.
class SizeCache {
 public:
  /// Makes a cache of at most `capacity` entries.
  explicit SizeCache(size_t capacity = 65'536) : capacity_(capacity) {}

  /// Returns what was stored under the key, if it has the limit and policy of `fresh`; with others
  /// `fresh` at the size that was found, and without an entry `fresh` as it is.
  [[nodiscard]] StepSize resume(const std::string& key, StepSize fresh);
  /// Keeps a size that is shrunken, or whose key has an entry.
  void store(const std::string& key, const StepSize& size);

  [[nodiscard]] size_t entries() const;  ///< returns how many keys have a size
  void clear();                          ///< forgets all sizes

  /// Returns all sizes, the newest first.
  [[nodiscard]] std::vector<FoundSize> found() const;
  /// Takes over such sizes, but for keys that have an entry.
  void add(const std::vector<FoundSize>& sizes);

  /// Writes all sizes, a line each, so that another process starts with them. Throws IoError.
  void save(const std::filesystem::path& file) const;
  /// Adds the sizes of a file that save() wrote. Throws IoError; FormatError for any other file,
  /// and then adds nothing.
  void load(const std::filesystem::path& file);

 private:
  struct Entry {
    std::string key;
    StepSize size;
    bool loaded = false;  // from a file, which has sizes only
  };
  using Entries = std::list<Entry>;
  void put(Entry entry);

  mutable std::mutex mutex_;
  size_t capacity_;
  Entries newest_first_;
  std::unordered_map<std::string_view, Entries::iterator> by_key_;  // views of the entries' keys
};

/// Returns the size cache of the process, which adaptive calls use.
[[nodiscard]] SizeCache& sizes();

}  // namespace tare::adapt
