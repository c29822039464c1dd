// The one seam through which every byte of file I/O goes, and the safe ways of writing files that are built on it.
//
// FileSystem mirrors the system calls, so that a test double can count them, fail call k (a short write, EINTR, ENOSPC,
// EIO, EROFS) or end the process there. The functions below it retry EINTR, complete short writes and throw IoError
// with path and cause; all other code of Tare calls only those.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tare::io {

enum class Mode { read, create, append };  ///< create: write only, made new or truncated; append: made if missing

/// The system calls. Each returns >= 0, or -errno. Thread-safe.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual int open(const char* path, Mode mode);
  virtual int close(int fd);
  virtual int64_t read(int fd, void* data, size_t size);
  virtual int64_t write(int fd, const void* data, size_t size);
  virtual int allocate(int fd, int64_t size);  ///< reserves blocks; -EOPNOTSUPP is not an error to callers
  virtual int flush(int fd);                   ///< fdatasync
  virtual int rename(const char* from, const char* to);
  virtual int make_directory(const char* path);
  virtual int remove(const char* path);  ///< a file or an empty directory
  virtual int flush_directory(const char* path);
  /// Maps the whole file privately (copy on write); *data is page-aligned. size must be > 0.
  virtual int map(int fd, int64_t size, void** data);
};

/// The file system in use: the real one unless a test has set another.
[[nodiscard]] FileSystem& file_system();
/// Sets the file system in use and returns the one before; nullptr means the real one. For tests; not thread-safe.
FileSystem* set_file_system(FileSystem* replacement);

/// An open file. Closes on destruction; an error of that close is lost, so writers call close().
class File {
 public:
  File(std::filesystem::path path, Mode mode);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  size_t read(void* data, size_t size);             ///< fewer bytes only at the end of the file
  void write(const void* data, size_t size);        ///< all of it
  void write(std::string_view text) { write(text.data(), text.size()); }
  void allocate(int64_t size);                      ///< reserves room, so that a full disk shows before the first byte
  void flush();                                     ///< waits until the data is on the disk
  void close();
  [[nodiscard]] int64_t size() const;               ///< bytes
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] int descriptor() const { return fd_; }

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

/// A file mapped into memory, private: writing to it changes neither the file nor other mappings. Alive as long as
/// this object; tensors that point into it hold a shared_ptr to it. An empty file gives an empty span.
class Mapping {
 public:
  explicit Mapping(const std::filesystem::path& path);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  [[nodiscard]] std::span<std::byte> bytes() const { return {static_cast<std::byte*>(data_), size_}; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

/// The whole file as text. Throws IoError, also when it is larger than `limit_bytes`.
[[nodiscard]] std::string read_text(const std::filesystem::path& path, int64_t limit_bytes = int64_t{64} << 20);

/// Writes a file so that at every moment the old or the new content is there, whole: `path`.partial, flushed, renamed,
/// folder flushed. On any error the old file stays, the partial one is removed, and IoError or what `fill` threw
/// comes out.
void write_atomically(const std::filesystem::path& path, const std::function<void(File&)>& fill);
void write_atomically(const std::filesystem::path& path, std::string_view text);

/// Fills a new directory under `path`.partial (flushing is `fill`'s duty for its files), then puts it in the place of
/// `path`, which may exist: the old one is moved to `path`.old, and removed after the rename. A reader that finds no
/// `path` but `path`.old takes that one (see recover_directory). On an error the old directory stays and the partial
/// one is removed.
void write_directory_atomically(const std::filesystem::path& path,
                                const std::function<void(const std::filesystem::path&)>& fill);

/// Repairs what a killed write_directory_atomically left: restores `path`.old where `path` is missing, removes
/// leftovers. Returns the names of what it removed or restored.
std::vector<std::string> recover_directory(const std::filesystem::path& path);

/// Makes the directory and its missing parents.
void make_directories(const std::filesystem::path& path);
/// Removes a file or a whole tree; what is not there is no error.
void remove_all(const std::filesystem::path& path);

/// `name` if it is safe as a single path component (letters, digits, '.', '_', '-', at most 128 bytes, not starting
/// with '.'), else ConfigError naming `field` and the rule.
const std::string& checked_name(const std::string& name, std::string_view field);

}  // namespace tare::io
