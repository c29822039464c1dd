// Downloads files by `curl`, within their size, and verifies them.
#include "tare/data/download.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <functional>
#include <span>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/base/sha256.h"
#include "tare/config/field.h"

extern char** environ;

namespace tare {

void visit_fields(auto& visit, RemoteFile& f) {
  visit("name", f.name)("url", f.url)("bytes", f.bytes, config::at_least(1))("sha256", f.sha256);
}
void visit_fields(auto& visit, Manifest& m) {
  visit("name", m.name)("source", m.source)("licence", m.licence)("files", m.files);
}

namespace {

constexpr size_t kBuffer = 1 << 16;

struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw IoError("data.download", "pipe", errno);
    read = ends[0], write = ends[1];
  }
  ~Pipe() {
    close_write();
    ::close(read);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_write() {
    if (write >= 0) ::close(write);
    write = -1;
  }
  // 0 at the end.
  size_t get(std::array<char, kBuffer>& buffer) const {
    for (;;) {
      const ssize_t count = ::read(read, buffer.data(), buffer.size());
      if (count >= 0) return static_cast<size_t>(count);
      if (errno != EINTR) throw IoError("data.download", "pipe", errno);
    }
  }
};

// A running curl that writes the body to `out` and its message to `errors`. Ended, if need be, and
// waited for when the object goes.
class Curl {
 public:
  explicit Curl(const std::string& url) : url_(url) {
    std::vector<std::string> arguments{"curl",        "--fail",
                                       "--silent",    "--show-error",
                                       "--location",  "--proto",
                                       "=http,https", "--proto-redir",
                                       "=http,https", "--connect-timeout",
                                       "10",          "--speed-time",
                                       "30",          "--speed-limit",
                                       "1000",        "--max-redirs",
                                       "5",           "--globoff",
                                       "--",          url};
    std::vector<char*> argv;
    argv.reserve(arguments.size() + 1);
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out.write, 1);
    posix_spawn_file_actions_adddup2(&actions, errors.write, 2);
    posix_spawnattr_t as_at_first;  // curl ends when this process does, whatever this one ignores
    posix_spawnattr_init(&as_at_first);
    sigset_t usual;
    sigemptyset(&usual);
    for (const int signal : {SIGPIPE, SIGXFSZ}) sigaddset(&usual, signal);
    posix_spawnattr_setsigdefault(&as_at_first, &usual);
    posix_spawnattr_setflags(&as_at_first, POSIX_SPAWN_SETSIGDEF);
    const int error = ::posix_spawnp(&pid_, "curl", &actions, &as_at_first, argv.data(), environ);
    posix_spawnattr_destroy(&as_at_first);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) {
      pid_ = -1;
      throw IoError("data.download", url,
                    error == ENOENT ? "the program curl is missing: install the package curl"
                                    : "curl could not be started");
    }
    out.close_write();
    errors.close_write();
  }
  ~Curl() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGTERM);
    (void)wait();
  }
  Curl(const Curl&) = delete;
  Curl& operator=(const Curl&) = delete;

  // Throws IoError with curl's own words unless it ended well.
  void finish() {
    std::array<char, kBuffer> buffer{};
    const std::string message(buffer.data(), errors.get(buffer));
    const int status = wait();
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    throw IoError(
        "data.download", url_,
        message.empty() ? "curl failed" : printable(message.substr(0, message.find('\n'))));
  }

  Pipe out, errors;

 private:
  int wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }
  std::string url_;
  pid_t pid_ = -1;
};

// Every chunk of a file.
void for_each_chunk(const std::filesystem::path& path,
                    const std::function<void(std::span<const char>)>& use) {
  io::File file(path, io::Mode::read);
  std::array<char, kBuffer> buffer{};
  while (const size_t count = file.read(buffer.data(), buffer.size())) use({buffer.data(), count});
}

bool is_there(const RemoteFile& file, const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return !error && size == static_cast<uint64_t>(file.bytes) && sha256_of(path) == file.sha256;
}

// The body of `file.url` into `out`, checked.
void receive(const RemoteFile& file, const std::filesystem::path& path, io::File& out) {
  Curl curl(file.url);
  Sha256 hash;
  int64_t received = 0;
  std::array<char, kBuffer> buffer{};
  while (const size_t count = curl.out.get(buffer)) {
    received += static_cast<int64_t>(count);
    if (received > file.bytes)
      throw FormatError("data.download", path.string(), "size",
                        "more than " + format_count(file.bytes) + " bytes came from " + file.url);
    hash.add({buffer.data(), count});
    out.write(buffer.data(), count);
  }
  curl.finish();
  if (received != file.bytes)
    throw FormatError("data.download", path.string(), "size",
                      format_count(received) + " bytes came from " + file.url + ", expected " +
                          format_count(file.bytes));
  if (const std::string got = hash.hex(); got != file.sha256)
    throw FormatError("data.download", path.string(), "sha256",
                      got + " came from " + file.url + ", expected " + file.sha256);
}

}  // namespace

Manifest parse_manifest(std::string_view yaml, const std::string& file) {
  auto manifest = config::read<Manifest>(config::parse_text(yaml, file));
  for (const RemoteFile& remote : manifest.files) {
    (void)io::checked_name(remote.name, "files.name");
    if (remote.sha256.size() != 64 ||
        remote.sha256.find_first_not_of("0123456789abcdef") != std::string::npos)
      throw ConfigError(Source{.file = file}, "files.sha256", "is no SHA-256",
                        "64 lower-case hexadecimal digits", remote.sha256);
    if (!remote.url.starts_with("http://") && !remote.url.starts_with("https://"))
      throw ConfigError(Source{.file = file}, "files.url", "is not a web address",
                        "http:// or https://", remote.url);
  }
  return manifest;
}

std::string sha256_of(const std::filesystem::path& path) {
  Sha256 hash;
  for_each_chunk(path, [&](std::span<const char> bytes) { hash.add(bytes); });
  return hash.hex();
}

void download(const RemoteFile& file, const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / io::checked_name(file.name, "files.name");
  if (is_there(file, path)) return;
  log::info("downloading " + file.url + " (" + format_bytes(file.bytes) + ")");
  const bool was_there = std::filesystem::exists(folder);
  io::make_directories(folder);
  try {
    io::write_atomically(path, [&](io::File& out) { receive(file, path, out); });
  } catch (...) {
    std::error_code ignored;  // an empty folder may stay, and the download's error matters
    if (!was_there) std::filesystem::remove(folder, ignored);
    throw;
  }
}

}  // namespace tare
