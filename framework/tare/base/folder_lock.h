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
  explicit FolderLock(const std::filesystem::path& folder);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  File folder_;
};

}  // namespace tare::io
