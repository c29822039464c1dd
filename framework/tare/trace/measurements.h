// Keeps the allocations of single operators as they were measured on this host and its cards: for
// the life of the process and, if wanted, in a file for the next one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "tare/trace/allocation_trace.h"

namespace tare::plan {

/// Recordings of operators that were measured on this host, by key. Thread-safe.
class Measurements {
 public:
  /// Holds everything on which a measurement depends, except the processor and the libraries.
  using Key = std::vector<int64_t>;

  /// Uses the file `folder`/measurements.txt from now on: of() looks there for keys that this
  /// process has not measured, and save() adds new measurements. Other processes may use the file
  /// too. The file holds for one processor, LibTorch and oneDNN; a file of others, or a damaged
  /// one, is ignored and replaced. Nothing is read or written before it is needed. With an empty
  /// path no file is used any more; known measurements stay.
  void keep_in(const std::filesystem::path& folder);

  /// Returns what `measure` returns, which is called once for a key, with a lock held. Throws what
  /// `measure` throws.
  [[nodiscard]] AllocationTrace of(const Key& key, const std::function<AllocationTrace()>& measure);

  /// Returns what is kept for the key; unset: it has not been measured.
  [[nodiscard]] std::optional<AllocationTrace> known(const Key& key);

  /// Writes new measurements together with those that are in the file by now; does nothing without
  /// a folder or new ones. If the folder cannot be written, or another process is just writing it,
  /// a message at debug level follows, and the next process measures again.
  void save();

 private:
  void read_once();

  std::mutex mutex_;
  std::map<Key, AllocationTrace> works_;
  std::filesystem::path folder_;
  bool has_read_ = true;   // the folder's file has been read, or there is no folder
  bool has_news_ = false;  // measurements that are not in the file
  bool warm_ = false;      // something has been measured here
};

/// Returns the measurements of the process, which plans use for convolutions and LSTM layers of the
/// host, and for the workspaces of cuDNN on cards.
[[nodiscard]] Measurements& measurements();

}  // namespace tare::plan
