// What single operators were measured to allocate on this host: kept for the life of the process
// and, if wanted, in a file for the next one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "tare/trace/allocation_trace.h"

namespace tare::plan {

/// Thread-safe.
class Measurements {
 public:
  /// Everything that a measurement depends on but for the processor and the libraries.
  using Key = std::vector<int64_t>;

  /// Looks up, from now on, what is not known in `folder`/measurements.txt, where other processes
  /// left theirs, and save() adds to it. The file is of one processor, LibTorch and oneDNN: that of
  /// another, or a damaged one, is passed over and replaced. Nothing is read or written before it
  /// is needed. An empty path: no file any more; what is known stays known.
  void keep_in(const std::filesystem::path& folder);

  /// Returns what `measure` returns, which is called once for a key, with a lock held. Throws what
  /// `measure` throws.
  [[nodiscard]] AllocationTrace of(const Key& key, const std::function<AllocationTrace()>& measure);

  /// Writes what is new, with what is in the file by now; does nothing without a folder or news. A
  /// folder that cannot be written, or is just being written by another process, is a message at
  /// debug level: the next process measures again.
  void save();

 private:
  std::mutex mutex_;
  std::map<Key, AllocationTrace> works_;
  std::filesystem::path folder_;
  bool has_read_ = true;   // the folder's file, or there is no folder
  bool has_news_ = false;  // that are not in the file
  bool warm_ = false;      // something has been measured here
};

/// Returns the measurements of the process, which plans use for convolutions and LSTM layers.
[[nodiscard]] Measurements& measurements();

}  // namespace tare::plan
