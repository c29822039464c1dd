#include "tare/base/folder_lock.h"

#include <sys/file.h>

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

}  // namespace tare::io
