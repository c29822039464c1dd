// FolderLock: one process per folder.
#pragma once

#include <filesystem>

#include "tare/base/io.h"

namespace tare::io {

/// Locks an existing folder against other processes that also lock it, for the lifetime of the
/// object; the system releases the lock when the process ends in any way. Throws StateError if
/// another process has it, IoError.
class FolderLock {
 public:
  /// Locks the folder without waiting; throws as described at the class.
  explicit FolderLock(const std::filesystem::path& folder);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  /// Throws IoError if the folder's path no longer leads to the folder that is locked: somebody has
  /// deleted, moved or replaced it.
  void check_still_there() const;

 private:
  File folder_;
};

}  // namespace tare::io
