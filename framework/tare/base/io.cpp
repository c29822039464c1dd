// Reads, maps and writes files and folders through the FileSystem.
#include "tare/base/io.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/leftovers.h"
#include "tare/base/log.h"

namespace tare::io {

namespace fs = std::filesystem;

namespace {

/// Calls again as long as a signal interrupts.
template <class Call>
auto retried(Call call) {
  auto result = call();
  while (result == -EINTR) result = call();
  return result;
}

/// Returns the result of the call; throws for any error but EINTR.
template <class Call>
auto checked(const char* operation, const fs::path& path, Call call) {
  const auto result = retried(call);
  if (result < 0) throw IoError(operation, path.string(), static_cast<int>(-result));
  return result;
}

void rename_checked(const fs::path& from, const fs::path& to) {
  checked("io.rename", from, [&] { return file_system().rename(from.c_str(), to.c_str()); });
}

/// Folders that cannot be flushed at all (EINVAL, on some network file systems) are no error.
void flush_folder(const fs::path& path) {
  const int result = retried([&] { return file_system().flush_directory(path.c_str()); });
  if (result < 0 && result != -EINVAL) throw IoError("io.flush_directory", path.string(), -result);
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

fs::path with_suffix(fs::path path, const char* suffix) {
  if (!path.has_filename()) path = path.parent_path();
  return path += suffix;
}

/// Whether there is an entry, be it a link that leads nowhere.
bool present(const fs::path& path) {
  std::error_code error;
  const fs::file_type type = fs::symlink_status(path, error).type();
  if (type == fs::file_type::none) throw IoError("io.status", path.string(), error.value());
  return type != fs::file_type::not_found;
}

}  // namespace

File::File(fs::path path, Mode mode) : path_(std::move(path)) {
  fd_ = checked("io.open", path_, [&] { return file_system().open(path_.c_str(), mode); });
}

File::~File() {
  if (fd_ >= 0) file_system().close(fd_);
}

size_t File::read(void* data, size_t size) {
  auto* out = static_cast<std::byte*>(data);
  size_t done = 0;
  while (done < size) {
    const int64_t count =
        checked("io.read", path_, [&] { return file_system().read(fd_, out + done, size - done); });
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return done;
}

void File::write(const void* data, size_t size) {
  const auto* in = static_cast<const std::byte*>(data);
  while (size > 0) {
    const int64_t count =
        checked("io.write", path_, [&] { return file_system().write(fd_, in, size); });
    if (count == 0) throw IoError("io.write", path_.string(), "the system took no byte");
    in += count;
    size -= static_cast<size_t>(count);
  }
}

void File::allocate(int64_t size) {
  if (size <= 0) return;
  const int result = retried([&] { return file_system().allocate(fd_, size); });
  if (result < 0 && result != -EOPNOTSUPP && result != -ENOSYS)
    throw IoError("io.allocate", path_.string(), -result);
}

void File::flush() {
  checked("io.flush", path_, [&] { return file_system().flush(fd_); });
}

void File::close() {
  if (fd_ < 0) return;
  // Linux has closed the descriptor even when it reports EINTR: a second close could hit another
  // thread's file.
  const int result = file_system().close(std::exchange(fd_, -1));
  if (result < 0 && result != -EINTR) throw IoError("io.close", path_.string(), -result);
}

int64_t File::size() const {
  struct stat status {};
  if (::fstat(fd_, &status) != 0) throw IoError("io.size", path_.string(), errno);
  return status.st_size;
}

namespace {

/// Names what is neither a file nor a folder; empty for these two and for what is not there.
const char* special_kind(const fs::path& path) {
  std::error_code ignored;  // the opening reports why a file cannot be looked at
  switch (fs::status(path, ignored).type()) {
    case fs::file_type::fifo:
      return "a pipe";
    case fs::file_type::socket:
      return "a socket";
    case fs::file_type::character:
    case fs::file_type::block:
      return "a device";
    default:
      return "";
  }
}

}  // namespace

Mapping::Mapping(const fs::path& path) {
  const std::string special = special_kind(path);
  if (!special.empty())  // opening a pipe would wait for a writer
    throw ConfigError("io.map", printable(path.string(), 1000) + " is " + special +
                                    ", whose bytes cannot be mapped: copy them to a file, and "
                                    "give that");
  File file(path, Mode::read);
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) throw IoError("io.map", path.string(), EISDIR);
  const int64_t size = file.size();
  if (size == 0) return;
  checked("io.map", path, [&] { return file_system().map(file.descriptor(), size, &data_); });
  size_ = static_cast<size_t>(size);
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

std::string read_text(const fs::path& path, int64_t limit_bytes) {
  File file(path, Mode::read);
  const auto limit = static_cast<size_t>(limit_bytes);
  // One byte more than expected, so that a file of just that size ends in one read. Those of the
  // kernel's own file systems have a size of 0.
  constexpr size_t kLeast = 4095;
  std::string text(std::min(std::max(static_cast<size_t>(file.size()), kLeast), limit) + 1, '\0');
  size_t used = file.read(text.data(), text.size());
  while (used == text.size() && used <= limit) {
    text.resize(std::min(2 * used, limit + 1));
    used += file.read(text.data() + used, text.size() - used);
  }
  if (used > limit)
    throw IoError("io.read_text", path.string(),
                  "is larger than the limit of " + std::to_string(limit_bytes) + " bytes");
  text.resize(used);
  return text;
}

namespace {

/// Runs clean-up whose failure must not hide what happened before.
template <class Action>
void logged(Action action) {
  try {
    action();
  } catch (const IoError& error) {
    log::warning(error.what());
  }
}

/// Removes what is left of an unfinished write.
class Leftover {
 public:
  explicit Leftover(fs::path path) : path_(std::move(path)) {}
  ~Leftover() {
    if (!path_.empty()) logged([this] { io::remove_all(path_); });
  }
  /// Notes that the file is in place, so that what has its name now is another writer's.
  void forget() { path_.clear(); }
  Leftover(const Leftover&) = delete;
  Leftover& operator=(const Leftover&) = delete;

 private:
  fs::path path_;
};

void flush_committed(const fs::path& path) {
  try {
    flush_folder(folder_of(path));
  } catch (const IoError& error) {
    throw IoError("io.write", path.string(),
                  std::string("the new content is in place, but its folder could not be flushed, "
                              "so it may not outlive a power loss: ") +
                      error.what());
  }
}

bool is_stream(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return fs::exists(status) && fs::is_other(status);
}

/// Returns the file that a link leads to, or the path itself.
fs::path behind_links(const fs::path& path) {
  std::error_code error;
  if (!fs::is_symlink(path, error)) return path;
  fs::path target = fs::weakly_canonical(path, error);
  if (error) throw IoError("io.write", path.string(), error.value());
  return target;
}

/// Throws ConfigError for a name under which an atomic write keeps what is not in place yet.
void refuse_names_of_leftovers(const fs::path& path) {
  const std::string extension = path.extension().string();
  const std::string suffix(leftover_suffix(extension));
  if (!suffix.empty())
    throw ConfigError("io.write", "'" + printable(path.string()) + "' ends in " + suffix +
                                      ", which stands for what a save that was cut off leaves "
                                      "behind; give another name");
}

/// Throws IoError where a file that is open has another one's name by now: another process, or a
/// thread, writes the file too, and has replaced what was not in place yet.
void check_own(const File& file, const fs::path& partial, const fs::path& target) {
  struct stat own {
  }, there{};
  if (::fstat(file.descriptor(), &own) != 0) return;  // a file system of a test
  if (::stat(partial.c_str(), &there) == 0 && own.st_ino == there.st_ino &&
      own.st_dev == there.st_dev)
    return;
  throw IoError("io.write", target.string(), "another process writes it at this moment");
}

}  // namespace

void write_atomically(const fs::path& path, const std::function<void(File&)>& fill, Flush flush) {
  if (is_stream(path)) {
    File stream(path, Mode::append);
    fill(stream);
    return stream.close();
  }
  const fs::path target = behind_links(path);
  refuse_names_of_leftovers(target);
  const fs::path partial = with_suffix(target, ".partial");
  if (fs::is_regular_file(partial)) io::remove_all(partial);  // and not what a writer has open
  Leftover leftover(partial);
  File file(partial, Mode::create);
  fill(file);
  if (flush == Flush::yes) file.flush();
  try {
    check_own(file, partial, target);
  } catch (const IoError&) {
    leftover.forget();
    throw;
  }
  file.close();
  rename_checked(partial, target);
  leftover.forget();
  if (flush == Flush::yes) flush_committed(target);
}

void write_atomically(const fs::path& path, std::string_view text, Flush flush) {
  write_atomically(
      path, [text](File& file) { file.write(text); }, flush);
}

void check_writable(const fs::path& path) {
  if (is_stream(path)) return;
  const fs::path target = behind_links(path), folder = folder_of(target);
  const auto refuse = [](const fs::path& at, int error) {
    throw IoError("io.write", at.string(), error);
  };
  if (fs::is_directory(target) || !target.has_filename()) refuse(path, EISDIR);
  const fs::file_status status = fs::status(folder);
  if (!fs::exists(status)) refuse(folder, ENOENT);
  if (!fs::is_directory(status)) refuse(folder, ENOTDIR);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) refuse(folder, errno);
}

namespace {

void flush_tree(const fs::path& root) {
  std::error_code error;
  fs::recursive_directory_iterator entry(root, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error))
    if (entry->is_directory(error) && !entry->is_symlink(error)) flush_folder(entry->path());
  if (error) throw IoError("io.list", root.string(), error.value());
  flush_folder(root);
}

/// Replaces a directory on a file system without exchange: .old marks a whole old directory that
/// may have to come back, so it is never there while its files are being removed.
void replace_by_renames(const fs::path& partial, const fs::path& path) {
  const fs::path old = with_suffix(path, ".old");
  rename_checked(path, old);
  try {
    rename_checked(partial, path);
  } catch (const IoError&) {
    logged([&] { rename_checked(old, path); });
    throw;
  }
  logged([&] { rename_checked(old, partial); });
  flush_committed(path);
}

/// Puts `partial` in the place of `path`; afterwards `partial` is absent or holds the old content.
void replace_directory(const fs::path& partial, const fs::path& path) {
  if (!present(path)) {
    rename_checked(partial, path);
    return flush_committed(path);
  }
  const int result = retried([&] { return file_system().exchange(partial.c_str(), path.c_str()); });
  if (result == -EINVAL || result == -ENOSYS || result == -EOPNOTSUPP)
    return replace_by_renames(partial, path);
  if (result < 0) throw IoError("io.exchange", path.string(), -result);
  flush_committed(path);
}

}  // namespace

void write_directory_atomically(const fs::path& path,
                                const std::function<void(const fs::path&)>& fill) {
  refuse_names_of_leftovers(path);
  recover_directory(path);
  const fs::path partial = with_suffix(path, ".partial");
  const Leftover leftover(partial);
  checked("io.make_directory", partial,
          [&] { return file_system().make_directory(partial.c_str()); });
  fill(partial);
  flush_tree(partial);
  replace_directory(partial, path);
}

fs::path current_directory(const fs::path& path) {
  const fs::path old = with_suffix(path, ".old");
  return !present(path) && present(old) ? old : path;
}

std::vector<std::string> recover_directory(const fs::path& path) {
  const fs::path old = with_suffix(path, ".old"), partial = with_suffix(path, ".partial");
  std::vector<std::string> done;
  const auto note = [&](const char* what, const fs::path& name) {
    done.push_back(what + name.filename().string());
  };
  if (present(old) && !present(path)) {
    rename_checked(old, path);
    flush_folder(folder_of(path));
    note("restored ", old);
  }
  for (const fs::path& leftover : {partial, old}) {
    if (!present(leftover)) continue;
    io::remove_all(leftover);
    note("removed ", leftover);
  }
  return done;
}

void remove_directory_atomically(const fs::path& path) {
  const fs::path partial = with_suffix(path, ".partial");
  io::remove_all(partial);
  if (!present(path)) return;
  rename_checked(path, partial);
  io::remove_all(partial);
}

void move(const fs::path& from, const fs::path& to) {
  io::remove_all(to);
  rename_checked(from, to);
  flush_folder(folder_of(to));
}

void make_directories(const fs::path& path) {
  std::error_code ignored;
  if (path.empty() || fs::is_directory(path, ignored)) return;
  if (!path.has_filename()) return make_directories(path.parent_path());
  const fs::path folder = folder_of(path);
  make_directories(folder);
  const int result = retried([&] { return file_system().make_directory(path.c_str()); });
  // Another process may have made it meanwhile; a file of that name is an error.
  if (result == -EEXIST && fs::is_directory(path, ignored)) return;
  if (result == -EEXIST && fs::is_symlink(path, ignored) && !fs::exists(path, ignored))
    throw IoError("io.make_directories",
                  path.string() + ", a link to " + fs::read_symlink(path, ignored).string(),
                  ENOENT);
  if (result == -EEXIST) throw IoError("io.make_directories", path.string(), ENOTDIR);
  if (result < 0) throw IoError("io.make_directories", path.string(), -result);
  flush_folder(folder);
}

void remove_all(const fs::path& path) {
  std::error_code error;
  const fs::file_type type = fs::symlink_status(path, error).type();
  if (type == fs::file_type::not_found) return;
  if (type == fs::file_type::directory) {
    std::vector<fs::path> entries;
    for (fs::directory_iterator entry(path, error); !error && entry != fs::directory_iterator();
         entry.increment(error))
      entries.push_back(entry->path());
    if (error) throw IoError("io.list", path.string(), error.value());
    for (const fs::path& entry : entries) io::remove_all(entry);
  }
  const int result = retried([&] { return file_system().remove(path.c_str()); });
  if (result < 0 && result != -ENOENT) throw IoError("io.remove", path.string(), -result);
}

fs::path cache_home() {
  const auto given = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value ? value : "");
  };
  if (const auto home = given("TARE_HOME"); !home.empty()) return home;
  if (const auto home = given("HOME"); !home.empty()) return home / ".cache/tare";
  return fs::temp_directory_path() / "tare";
}

const std::string& checked_name(const std::string& name, std::string_view field) {
  constexpr size_t kLongest = 128;
  const auto safe = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  if (name.empty() || name.size() > kLongest || name.front() == '.' ||
      !std::all_of(name.begin(), name.end(), safe))
    throw ConfigError(Source{}, std::string(field), "must be a plain name",
                      "letters, digits, '.', '_', '-', at most 128 bytes, not starting with '.'",
                      "\"" + name + "\"");
  return name;
}

}  // namespace tare::io
