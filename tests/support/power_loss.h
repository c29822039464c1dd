// A file system whose power goes at call k: what was not flushed by then is lost. The method is
// that of leveldb's fault_injection_test: know what was synced, drop the rest.
#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "tare/base/file_system.h"

namespace tare::testing {

/// Works on one folder, in use from construction to destruction. Durable are the bytes of a file as
/// of its last flush and the names in a folder as of that folder's last flush; what is there at
/// construction is durable. From call `at` on nothing is done any more and every call fails, as for
/// a process that no longer runs.
class PowerLossFileSystem final : public io::FileSystem {
 public:
  /// `at` from 1; 0: never. `names_survive`: the disk had written every rename before the data.
  PowerLossFileSystem(std::filesystem::path folder, int64_t at, bool names_survive)
      : folder_(std::move(folder)), at_(at), names_survive_(names_survive) {
    namespace fs = std::filesystem;
    remember_names(folder_);
    for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
      if (entry.is_directory()) remember_names(entry.path());
      if (entry.is_regular_file()) remember_bytes(entry.path());
    }
    before_ = io::set_file_system(this);
  }
  ~PowerLossFileSystem() override { io::set_file_system(before_); }
  PowerLossFileSystem(const PowerLossFileSystem&) = delete;
  PowerLossFileSystem& operator=(const PowerLossFileSystem&) = delete;

  [[nodiscard]] int64_t count() const { return count_; }

  /// Writes what a machine would find after the power is back into `to`, an empty folder.
  void restore_into(const std::filesystem::path& to) const { restore(folder_, to); }

  int open(const char* path, io::Mode mode) override {
    return alive([&] { return FileSystem::open(path, mode); });
  }
  int close(int fd) override {
    const int closed = FileSystem::close(fd);
    return alive([&] { return closed; });
  }
  int64_t write(int fd, const void* data, size_t size) override {
    return alive([&] { return FileSystem::write(fd, data, size); });
  }
  int allocate(int fd, int64_t size) override {
    return alive([&] { return FileSystem::allocate(fd, size); });
  }
  int flush(int fd) override {
    return alive([&] {
      remember_bytes(std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd)));
      return 0;
    });
  }
  int rename(const char* from, const char* to) override {
    return alive([&] { return FileSystem::rename(from, to); });
  }
  int exchange(const char* a, const char* b) override {
    return alive([&] { return FileSystem::exchange(a, b); });
  }
  int make_directory(const char* path) override {
    return alive([&] { return FileSystem::make_directory(path); });
  }
  int remove(const char* path) override {
    return alive([&] { return FileSystem::remove(path); });
  }
  int flush_directory(const char* path) override {
    return alive([&] {
      remember_names(path);
      return 0;
    });
  }

 private:
  using Names = std::map<std::string, ino_t>;

  static struct stat status_of(const std::filesystem::path& path) {
    struct stat status {};
    ::lstat(path.c_str(), &status);
    return status;
  }
  static Names names_in(const std::filesystem::path& folder) {
    Names names;
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      names[entry.path().filename().string()] = status_of(entry.path()).st_ino;
    return names;
  }

  template <class Call>
  auto alive(Call call) -> decltype(call()) {
    ++count_;
    if (at_ > 0 && count_ >= at_) return -EIO;
    return call();
  }
  void remember_names(const std::filesystem::path& folder) {
    names_[status_of(folder).st_ino] = names_in(folder);
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      folders_[status_of(entry.path()).st_ino] = entry.is_directory();
  }
  void remember_bytes(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    bytes_[status_of(path).st_ino] = {std::istreambuf_iterator<char>(file), {}};
  }

  void restore(const std::filesystem::path& folder, const std::filesystem::path& to) const {
    if (names_survive_) return restore_names(names_in(folder), to, &folder);
    restore_inode(status_of(folder).st_ino, to);
  }
  void restore_inode(ino_t folder, const std::filesystem::path& to) const {
    const auto found = names_.find(folder);
    if (found != names_.end()) restore_names(found->second, to, nullptr);
  }
  // `now`: the folder as it is, where its names survive without a flush.
  void restore_names(const Names& names, const std::filesystem::path& to,
                     const std::filesystem::path* now) const {
    for (const auto& [name, inode] : names) {
      const bool is_folder = now ? std::filesystem::is_directory(*now / name) : folders_.at(inode);
      if (!is_folder) {
        const auto found = bytes_.find(inode);  // never flushed: the name is there, the bytes not
        std::ofstream(to / name, std::ios::binary) << (found == bytes_.end() ? "" : found->second);
        continue;
      }
      std::filesystem::create_directory(to / name);
      if (now)
        restore(*now / name, to / name);
      else
        restore_inode(inode, to / name);
    }
  }

  std::filesystem::path folder_;
  int64_t at_, count_ = 0;
  bool names_survive_;
  io::FileSystem* before_ = nullptr;
  std::map<ino_t, Names> names_;        // durable, by folder
  std::map<ino_t, bool> folders_;       // what an entry is
  std::map<ino_t, std::string> bytes_;  // durable, by file
};

}  // namespace tare::testing
