// Locks a folder for one process.
#include "tare/base/folder_lock.h"

#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>

#include "tare/base/error.h"

namespace tare::io {

FolderLock::FolderLock(const std::filesystem::path& folder) : folder_(folder, Mode::read) {
  int result = 0;
  while ((result = ::flock(folder_.descriptor(), LOCK_EX | LOCK_NB)) != 0 && errno == EINTR) {
  }
  if (result == 0 || errno == ENOSYS || errno == EOPNOTSUPP) return;
  if (errno != EWOULDBLOCK) throw IoError("io.lock", folder.string(), errno);
  throw StateError("io.lock '" + printable(folder.string()) + "'", "in use by another process",
                   "wait for it, or give this run another name or folder");
}

void FolderLock::check_still_there() const {
  struct stat held {
  }, now{};
  if (fstat(folder_.descriptor(), &held) != 0)
    throw IoError("io.lock", folder_.path().string(), errno);
  if (stat(folder_.path().c_str(), &now) != 0)  // not a path that a user mistyped
    throw IoError("io.lock", folder_.path().string(),
                  "the folder was deleted or moved while it was in use");
  if (held.st_dev != now.st_dev || held.st_ino != now.st_ino)
    throw IoError("io.lock", folder_.path().string(), "the folder has been replaced by another");
}

}  // namespace tare::io
