// The one seam through which every byte of file I/O goes. FileSystem mirrors the system calls, so
// that a test double can count them, fail call k (a short write, EINTR, ENOSPC, EIO, EROFS) or end
// the process there (tests/support/fault_file_system.h). Only base/io.h calls it; everything else
// calls base/io.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tare::io {

enum class Mode {
  read,
  create,
  append
};  ///< create: write only, made new or truncated; append: made if missing

/// The system calls. Each returns >= 0, or -errno. Thread-safe.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual int open(const char* path, Mode mode);
  virtual int close(int fd);
  virtual int64_t read(int fd, void* data, size_t size);
  virtual int64_t write(int fd, const void* data, size_t size);
  virtual int allocate(int fd,
                       int64_t size);  ///< reserves blocks; -EOPNOTSUPP is not an error to callers
  virtual int flush(int fd);           ///< fdatasync
  virtual int rename(const char* from, const char* to);
  virtual int exchange(const char* a,
                       const char* b);  ///< swaps two names at once; not every file system can
  virtual int make_directory(const char* path);
  virtual int remove(const char* path);  ///< a file or an empty directory
  virtual int flush_directory(const char* path);
  /// Maps the whole file privately (copy on write); *data is page-aligned. size must be > 0.
  virtual int map(int fd, int64_t size, void** data);
};

/// The file system in use: the real one unless a test has set another.
[[nodiscard]] FileSystem& file_system();
/// Sets the file system in use and returns the one before; nullptr means the real one. For tests;
/// not thread-safe.
FileSystem* set_file_system(FileSystem* replacement);

}  // namespace tare::io
