// The folder of a sweep. Internal.
#pragma once

#include <memory>

#include "tare/base/folder_lock.h"
#include "tare/sweep/sweep_options.h"

namespace tare::sweep {

/// Makes log_dir and holds it. Throws ConfigError if it is of another sweep; StateError if another
/// process sweeps in it; IoError.
[[nodiscard]] std::unique_ptr<io::FolderLock> lock_folder(const SweepOptions& sweep);

}  // namespace tare::sweep
