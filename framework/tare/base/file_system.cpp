// Makes the system calls, and holds the FileSystem that a test puts in their place.
#include "tare/base/file_system.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "tare/base/immortal.h"

namespace tare::io {

namespace {

int result_of(int returned) { return returned < 0 ? -errno : returned; }
int64_t result_of(ssize_t returned) { return returned < 0 ? -errno : returned; }

}  // namespace

int FileSystem::open(const char* path, Mode mode) {
  constexpr int kFlags[] = {O_RDONLY, O_WRONLY | O_CREAT | O_TRUNC, O_WRONLY | O_CREAT | O_APPEND};
  return result_of(::open(path, kFlags[static_cast<int>(mode)] | O_CLOEXEC, 0666));
}
int FileSystem::close(int fd) { return result_of(::close(fd)); }
int64_t FileSystem::read(int fd, void* data, size_t size) {
  return result_of(::read(fd, data, size));
}
int64_t FileSystem::write(int fd, const void* data, size_t size) {
  return result_of(::write(fd, data, size));
}
int FileSystem::allocate(int fd, int64_t size) {
  return result_of(::fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, size));
}
int FileSystem::flush(int fd) { return result_of(::fdatasync(fd)); }
int FileSystem::rename(const char* from, const char* to) { return result_of(::rename(from, to)); }
int FileSystem::exchange(const char* a, const char* b) {
  return result_of(::renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE));
}
int FileSystem::make_directory(const char* path) { return result_of(::mkdir(path, 0777)); }
int FileSystem::remove(const char* path) { return result_of(::remove(path)); }
int FileSystem::flush_directory(const char* path) {
  const int fd = ::open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return -errno;
  const int flushed = result_of(::fsync(fd));
  ::close(fd);
  return flushed;
}
int FileSystem::map(int fd, int64_t size, void** data) {
  void* mapped =
      ::mmap(nullptr, static_cast<size_t>(size), PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
  if (mapped == MAP_FAILED) return -errno;
  *data = mapped;
  return 0;
}

namespace {

struct Current {
  FileSystem real;
  FileSystem* in_use = &real;
};

/// Never destroyed: files may close while the process exits.
Current& current() {
  static Immortal<Current> instance;
  return *instance;
}

}  // namespace

FileSystem& file_system() { return *current().in_use; }

FileSystem* set_file_system(FileSystem* replacement) {
  return std::exchange(current().in_use, replacement == nullptr ? &current().real : replacement);
}

}  // namespace tare::io
