// A folder on a file system of its own, which can be full or read-only.
#pragma once

#include <sys/mount.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/temp_dir.h"

namespace tare::testing {

/// A tmpfs of so many bytes, where mounting is allowed.
class SmallDisk {
 public:
  explicit SmallDisk(int64_t bytes) : size_("size=" + std::to_string(bytes)) {
    mounted_ = ::mount("tmpfs", place_.path().c_str(), "tmpfs", 0, size_.c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(place_.path().c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  [[nodiscard]] bool mounted() const { return mounted_; }
  [[nodiscard]] const std::filesystem::path& path() const { return place_.path(); }
  /// Whether it is so now.
  [[nodiscard]] bool set_read_only(bool read_only) const {
    const unsigned long flags = MS_REMOUNT | (read_only ? MS_RDONLY : 0);
    return ::mount("tmpfs", path().c_str(), "tmpfs", flags, size_.c_str()) == 0;
  }

 private:
  TempDir place_;
  std::string size_;
  bool mounted_ = false;
};

/// Writes until the disk is full.
inline void fill(const std::filesystem::path& path) {
  std::ofstream file(path, std::ios::binary);
  const std::string block(4096, 'x');
  while (file.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
  }
}

}  // namespace tare::testing
