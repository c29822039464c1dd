// The folder of a sweep. Internal.
#pragma once

#include <memory>

#include "tare/base/folder_lock.h"
#include "tare/sweep/sweep_options.h"

namespace tare::sweep {

/// Makes log_dir and holds it. Throws ConfigError if it is of another sweep; StateError if another
/// process sweeps in it; IoError, also if it is not writable.
[[nodiscard]] std::unique_ptr<io::FolderLock> lock_folder(const SweepOptions& sweep);

/// Returns the file of the sweep's store. Throws ConfigError if it is not there, although runs of
/// the sweep are: without it they would all run again.
[[nodiscard]] std::filesystem::path checked_store_file(const SweepOptions& sweep);

/// Throws IoError if a folder's disk is full, so that whatever has just failed may have failed of
/// that.
void require_disk_space(const std::filesystem::path& folder);

}  // namespace tare::sweep
