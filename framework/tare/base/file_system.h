// FileSystem: the system calls behind all file I/O. A test replaces it to count calls, fail call k
// (a short write, EINTR, ENOSPC, EIO, EROFS) or end the process there. Only base/io.cpp calls it;
// everything else uses base/io.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tare::io {

/// Selects the mode in which a file is opened.
enum class Mode {
  read,
  create,  ///< write only; created, or truncated
  append   ///< write only, at the end; created if missing
};

/// Makes the system calls. Each returns >= 0, or -errno. Thread-safe.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual int open(const char* path, Mode mode);  ///< returns a descriptor
  virtual int close(int fd);                      ///< calls close(2)
  /// Returns the bytes read; 0 at the end of the file.
  virtual int64_t read(int fd, void* data, size_t size);
  /// Returns the bytes written, which may be fewer than `size`.
  virtual int64_t write(int fd, const void* data, size_t size);
  /// Reserves blocks. Callers ignore -EOPNOTSUPP.
  virtual int allocate(int fd, int64_t size);
  virtual int flush(int fd);                             ///< calls fdatasync
  virtual int rename(const char* from, const char* to);  ///< replaces `to` atomically
  /// Swaps two names atomically. Not every file system supports it.
  virtual int exchange(const char* a, const char* b);
  virtual int make_directory(const char* path);   ///< makes one folder; its parent must exist
  virtual int remove(const char* path);           ///< removes a file or an empty directory
  virtual int flush_directory(const char* path);  ///< makes renames in it durable
  /// Maps the whole file privately (copy on write); *data is page-aligned. size must be > 0.
  virtual int map(int fd, int64_t size, void** data);
};

/// Returns the file system in use: the real one unless a test has set another.
[[nodiscard]] FileSystem& file_system();
/// Sets the file system in use and returns the one before; nullptr means the real one. For tests;
/// not thread-safe.
FileSystem* set_file_system(FileSystem* replacement);

}  // namespace tare::io
