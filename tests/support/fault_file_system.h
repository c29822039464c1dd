// A file system that counts its calls and fails, shortens or never returns from call k.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include "tare/base/file_system.h"

namespace tare::testing {

/// Describes a fault at call `at` (from 1; 0 = never).
struct Fault {
  enum class Kind {
    error,        ///< returns -error_number, nothing done
    short_write,  ///< a write takes about half; other calls are done as they are
    exit          ///< the process ends before the call, with kExitCode
  };
  int64_t at = 0;
  Kind kind = Kind::error;
  int error_number = 0;
  bool sticky = false;  ///< every call from `at` on, as on a full disk
};

/// In use from construction to destruction; nests. The two flushes are counted but not waited for:
/// what a process that ends leaves behind does not depend on them.
class FaultFileSystem : public io::FileSystem {
 public:
  static constexpr int kExitCode = 86;

  explicit FaultFileSystem(Fault fault = {}) : fault_(fault), before_(io::set_file_system(this)) {}
  ~FaultFileSystem() override { io::set_file_system(before_); }
  FaultFileSystem(const FaultFileSystem&) = delete;
  FaultFileSystem& operator=(const FaultFileSystem&) = delete;

  /// The names of the calls so far, the failed one included.
  [[nodiscard]] const std::vector<std::string>& calls() const { return calls_; }
  [[nodiscard]] int64_t count() const { return static_cast<int64_t>(calls_.size()); }
  /// Makes exchange fail with EINVAL, as file systems without it do; not counted as the fault.
  bool without_exchange = false;

  int open(const char* path, io::Mode mode) override {
    return result("open", [&] { return FileSystem::open(path, mode); });
  }
  /// A failing close has closed the descriptor, as on Linux.
  int close(int fd) override {
    const int failed = enter("close");
    const int closed = FileSystem::close(fd);
    return failed < 0 ? failed : closed;
  }
  int64_t read(int fd, void* data, size_t size) override {
    return result("read", [&] { return FileSystem::read(fd, data, size); });
  }
  int64_t write(int fd, const void* data, size_t size) override {
    return result("write", [&] { return FileSystem::write(fd, data, shortened(size)); });
  }
  int allocate(int fd, int64_t size) override {
    return result("allocate", [&] { return FileSystem::allocate(fd, size); });
  }
  int flush(int fd) override {
    return result("flush", [fd] { return fd < 0 ? -EBADF : 0; });
  }
  int rename(const char* from, const char* to) override {
    return result("rename", [&] { return FileSystem::rename(from, to); });
  }
  int exchange(const char* a, const char* b) override {
    return result("exchange",
                  [&] { return without_exchange ? -EINVAL : FileSystem::exchange(a, b); });
  }
  int make_directory(const char* path) override {
    return result("make_directory", [&] { return FileSystem::make_directory(path); });
  }
  int remove(const char* path) override {
    return result("remove", [&] { return FileSystem::remove(path); });
  }
  int flush_directory(const char* path) override {
    return result("flush_directory", [path] { return ::access(path, F_OK) == 0 ? 0 : -errno; });
  }
  int map(int fd, int64_t size, void** data) override {
    return result("map", [&] { return FileSystem::map(fd, size, data); });
  }

 private:
  [[nodiscard]] bool due() const {
    return fault_.at > 0 && (fault_.sticky ? count() >= fault_.at : count() == fault_.at);
  }
  /// Counts the call; the error that it is to return, or 0.
  int enter(const char* name) {
    calls_.emplace_back(name);
    if (!due() || fault_.kind == Fault::Kind::short_write) return 0;
    if (fault_.kind == Fault::Kind::exit) ::_exit(kExitCode);
    return -fault_.error_number;
  }
  template <class Call>
  auto result(const char* name, Call call) -> decltype(call()) {
    const int failed = enter(name);
    return failed < 0 ? failed : call();
  }
  [[nodiscard]] size_t shortened(size_t size) const {
    return due() && fault_.kind == Fault::Kind::short_write ? std::max<size_t>(size / 2, 1) : size;
  }

  Fault fault_;
  io::FileSystem* before_;
  std::vector<std::string> calls_;
};

}  // namespace tare::testing
