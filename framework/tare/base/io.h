// Files: reading, mapping, and atomic writing, which leaves the old or the new content but never
// half of it.
//
// All of it goes through base/file_system.h, retries EINTR, completes short writes and throws
// IoError with path and cause. Metadata (existence, size) is read directly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tare/base/file_system.h"

namespace tare::io {

/// Holds an open file. The destructor closes it without reporting errors, so writers call close().
class File {
 public:
  File(std::filesystem::path path, Mode mode);  ///< opens the file; throws IoError
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  size_t read(void* data, size_t size);       ///< reads less only at the end of the file
  void write(const void* data, size_t size);  ///< writes all of it
  void write(std::string_view text) { write(text.data(), text.size()); }  ///< writes the text
  void allocate(int64_t size);  ///< reserves space, so that a full disk is noticed before writing
  void flush();                 ///< waits until the data is on the disk
  void close();  ///< reports what the destructor would not; a second call does nothing
  [[nodiscard]] int64_t size() const;                                        ///< returns bytes
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }  ///< as it was given
  [[nodiscard]] int descriptor() const { return fd_; }  ///< is valid until close()

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

/// Maps a file into memory privately: writing to the bytes changes neither the file nor other
/// mappings. Tensors that point into it hold a shared_ptr to it. An empty file gives an empty span.
/// The file must not be truncated meanwhile; replacing it by rename is safe.
class Mapping {
 public:
  /// Maps the file. Throws IoError, and ConfigError for a pipe, a socket or a device, none of which
  /// is opened.
  explicit Mapping(const std::filesystem::path& path);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  /// Returns all bytes of the file; writing to them changes memory only.
  [[nodiscard]] std::span<std::byte> bytes() const {
    return {static_cast<std::byte*>(data_), size_};
  }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

/// Returns the whole file as text. Throws IoError, also when it is larger than `limit_bytes`.
[[nodiscard]] std::string read_text(const std::filesystem::path& path,
                                    int64_t limit_bytes = int64_t{64} << 20);

/// Whether a write waits for the disk.
enum class Flush {
  yes,
  no  ///< a kill leaves the old or the new content too, but a power loss may leave an empty file:
      ///< for files that can be made again
};

/// Writes a file atomically: `path`.partial is written, flushed and renamed, then the folder
/// flushed, so that at every moment the old or the new content is complete. On an error the old
/// file stays, the partial one is removed, and the IoError or what `fill` threw is rethrown. If
/// only the last call, the flush of the folder, fails, the new content is in place and the IoError
/// says that it may not survive a power loss. The folder must exist. For a symbolic link the target
/// is replaced; a device or pipe is written directly. Throws ConfigError for .partial or .old
/// names.
void write_atomically(const std::filesystem::path& path, const std::function<void(File&)>& fill,
                      Flush flush = Flush::yes);
/// Writes `text` in that way.
void write_atomically(const std::filesystem::path& path, std::string_view text,
                      Flush flush = Flush::yes);

/// Throws the IoError with which write_atomically would fail because of `path` itself: a missing
/// folder, one that is not writable, a folder in the file's place. For long work whose result is
/// written at its end. Writes nothing.
void check_writable(const std::filesystem::path& path);

/// Replaces a directory atomically: `fill` writes, and flushes, the files of a new directory
/// `path`.partial, which is then exchanged with `path` in one call, so that a reader always finds
/// the old or the new one. On file systems that cannot exchange, the old one is `path`.old for a
/// moment; readers use current_directory(). Errors as in write_atomically; a leftover that cannot
/// be removed after the exchange is logged and removed by the next write.
void write_directory_atomically(const std::filesystem::path& path,
                                const std::function<void(const std::filesystem::path&)>& fill);

/// Returns the directory to read: `path`, or `path`.old if a killed write left only that.
[[nodiscard]] std::filesystem::path current_directory(const std::filesystem::path& path);

/// Cleans up after a killed write_directory_atomically: restores `path`.old if `path` is missing
/// and removes leftovers. Only for the writer, while nobody writes. Returns the names of what it
/// removed or restored.
std::vector<std::string> recover_directory(const std::filesystem::path& path);

/// Removes a directory written by write_directory_atomically, so that no reader ever finds half of
/// it: after an error it is whole, or a leftover for recover_directory. A missing one is no error.
void remove_directory_atomically(const std::filesystem::path& path);

/// Renames a file or a tree on the same file system, replacing what is there, and flushes the
/// folder.
void move(const std::filesystem::path& from, const std::filesystem::path& to);

/// Creates the directory and its missing parents, and flushes the folders that got an entry.
void make_directories(const std::filesystem::path& path);
/// Removes a file or a whole tree; a missing one is no error. Links are removed, never followed.
void remove_all(const std::filesystem::path& path);

/// Returns the folder of downloads and of what can be made again: ${TARE_HOME:-~/.cache/tare}.
[[nodiscard]] std::filesystem::path cache_home();

/// Returns `name` if it is safe as a single path component (letters, digits, '.', '_', '-', at most
/// 128 bytes, not starting with '.'), else ConfigError naming `field` and the rule.
const std::string& checked_name(const std::string& name, std::string_view field);

}  // namespace tare::io
