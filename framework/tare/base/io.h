// Files: reading, mapping, and ways of writing that leave the old or the new content, never half of
// it.
//
// All of it goes through the seam in base/file_system.h, retries EINTR, completes short writes and
// throws IoError with path and cause. Metadata (does it exist, how large is it) is asked of the
// system directly.
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

/// An open file. Closes on destruction; an error of that close is lost, so writers call close().
class File {
 public:
  File(std::filesystem::path path, Mode mode);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  size_t read(void* data, size_t size);       ///< fewer bytes only at the end of the file
  void write(const void* data, size_t size);  ///< all of it
  void write(std::string_view text) { write(text.data(), text.size()); }
  void allocate(int64_t size);  ///< reserves room, so that a full disk shows before the first byte
  void flush();                 ///< waits until the data is on the disk
  void close();
  [[nodiscard]] int64_t size() const;  ///< bytes
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] int descriptor() const { return fd_; }

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

/// A file mapped into memory, private: writing to it changes neither the file nor other mappings.
/// Alive as long as this object; tensors that point into it hold a shared_ptr to it. An empty file
/// gives an empty span. Nobody may truncate the file meanwhile; one that was replaced by rename is
/// safe.
class Mapping {
 public:
  explicit Mapping(const std::filesystem::path& path);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  [[nodiscard]] std::span<std::byte> bytes() const {
    return {static_cast<std::byte*>(data_), size_};
  }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

/// The whole file as text. Throws IoError, also when it is larger than `limit_bytes`.
[[nodiscard]] std::string read_text(const std::filesystem::path& path,
                                    int64_t limit_bytes = int64_t{64} << 20);

/// Writes a file so that at every moment the old or the new content is there, whole:
/// `path`.partial, flushed, renamed, folder flushed. On an error the old file stays, the partial
/// one is removed, and IoError or what `fill` threw comes out. One exception: where only the last
/// call, the flush of the folder, fails, the new content is in place, and the IoError says that it
/// may not outlive a power loss. The folder must exist. The file behind a link is replaced, the
/// link stays; a device or pipe is written directly.
void write_atomically(const std::filesystem::path& path, const std::function<void(File&)>& fill);
void write_atomically(const std::filesystem::path& path, std::string_view text);

/// Throws the IoError that write_atomically would end in because of where `path` is: a missing
/// folder, one that may not be written to, a folder in the file's place. For work that takes long
/// before its result is written. Writes nothing.
void check_writable(const std::filesystem::path& path);

/// Fills a new directory `path`.partial (flushing is `fill`'s duty for its files, directories are
/// flushed here), then puts it in the place of `path`, which may exist. The two are exchanged in
/// one call, so that a reader always finds the old or the new one. Where the file system cannot do
/// that, the old one is `path`.old for a moment: readers go through current_directory. Errors as in
/// write_atomically; a leftover that cannot be removed after the exchange is logged, and goes with
/// the next write.
void write_directory_atomically(const std::filesystem::path& path,
                                const std::function<void(const std::filesystem::path&)>& fill);

/// The directory to read: `path`, or `path`.old where a killed write left only that one. Changes
/// nothing.
[[nodiscard]] std::filesystem::path current_directory(const std::filesystem::path& path);

/// Repairs what a killed write_directory_atomically left: restores `path`.old where `path` is
/// missing, removes leftovers. Only for the writer, while nobody writes. Returns the names of what
/// it removed or restored.
std::vector<std::string> recover_directory(const std::filesystem::path& path);

/// Gives a file or a tree another name on the same file system, in the place of what is there, and
/// flushes the folder.
void move(const std::filesystem::path& from, const std::filesystem::path& to);

/// Makes the directory and its missing parents, and flushes the folders that got an entry.
void make_directories(const std::filesystem::path& path);
/// Removes a file or a whole tree; what is not there is no error. Links are removed, never
/// followed.
void remove_all(const std::filesystem::path& path);

/// `name` if it is safe as a single path component (letters, digits, '.', '_', '-', at most 128
/// bytes, not starting with '.'), else ConfigError naming `field` and the rule.
const std::string& checked_name(const std::string& name, std::string_view field);

}  // namespace tare::io
