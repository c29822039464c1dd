// Supports the fuzz targets. A target reports a broken promise to libFuzzer by ending the process.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

namespace tare::fuzz {

/// Aborts, which libFuzzer reports with the input, unless the promise holds.
inline void require(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Calls `run` with the first byte, which says what kind of input it is, and the text after it. Bad
/// input is refused by a `Refusal`; anything else that is thrown ends the process.
template <class Refusal>
void run_kind(const uint8_t* data, size_t size, void (*run)(char, std::string_view)) {
  if (size == 0) return;
  try {
    run(static_cast<char>(data[0]), text_of(data + 1, size - 1));
  } catch (const Refusal&) {
  }
}

/// A file without a disk, for readers that take a path.
class MemoryFile {
 public:
  MemoryFile()
      : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)),
        path_("/proc/self/fd/" + std::to_string(descriptor_)) {
    require(descriptor_ >= 0, "the system gives a file in memory");
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  void set(std::string_view content) {
    const bool written = ::ftruncate(descriptor_, 0) == 0 &&
                         ::pwrite(descriptor_, content.data(), content.size(), 0) ==
                             static_cast<ssize_t>(content.size());
    require(written, "a file in memory can be written");
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  int descriptor_;
  std::filesystem::path path_;
};

}  // namespace tare::fuzz
