// One process a folder.
#pragma once

#include <filesystem>

#include "tare/base/io.h"

namespace tare::io {

/// Keeps other processes out of a folder that exists, as long as it lives; the system lets go when
/// the process ends, however it ends. Only those that ask are kept out. Throws StateError where
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
