// Starts processes by fork and exec, follows them by descriptors, and recognises them.
#include "tare/launch/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <optional>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/base/signals.h"

extern char** environ;

namespace tare::launch {
namespace {

std::string boot_id() {
  std::string text = io::read_text("/proc/sys/kernel/random/boot_id");
  return text.substr(0, text.find('\n'));
}

/// Returns a field of /proc/PID/stat, by its number in proc(5), of 4 or more; 0 without such a
/// process, or if it has ended and nobody has waited.
int64_t stat_of(int64_t pid, int number) {
  std::string text;
  try {
    text = io::read_text("/proc/" + std::to_string(pid) + "/stat");
  } catch (const IoError&) {
    return 0;
  }
  size_t at = text.rfind(')');  // the name may hold anything
  if (at == std::string::npos || at + 2 >= text.size()) return 0;
  if (text[at + 2] == 'Z' || text[at + 2] == 'X') return 0;
  for (int field = 2; field < number && at != std::string::npos; ++field)
    at = text.find(' ', at + 1);
  int64_t value = 0;
  if (at != std::string::npos)
    std::from_chars(text.data() + at + 1, text.data() + text.size(), value);
  return value;
}

int64_t started_ticks(int64_t pid) { return stat_of(pid, 22); }

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (auto& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

std::vector<std::string> environment_with(
    const std::vector<std::pair<std::string, std::string>>& added) {
  std::vector<std::string> all;
  for (const auto& [key, value] : added) all.push_back(key + '=' + value);
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    bool replaced = false;
    for (const auto& [key, value] : added) replaced = replaced || text.starts_with(key + '=');
    if (!replaced) all.emplace_back(text);
  }
  return all;
}

/// Runs between fork and exec, so nothing here allocates or locks. Returns only an errno.
int execute(pid_t parent, int in, int out, int err, char** command, char** environment) {
  if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno;
  if (getppid() != parent) return ECHILD;  // it ended before it could be followed
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  restore_write_signals();
  if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0) return errno;
  execvpe(command[0], command, environment);
  return errno;
}

}  // namespace

Child::Child(const ChildStart& start) {
  const io::File in("/dev/null", io::Mode::read);
  std::optional<io::File> out, err;
  if (!start.out.empty()) out.emplace(start.out, io::Mode::append);
  if (!start.err.empty()) err.emplace(start.err, io::Mode::append);
  auto words = start.command;
  auto variables = environment_with(start.environment);
  const auto command = pointers(words), environment = pointers(variables);
  int failure[2];
  if (pipe2(failure, O_CLOEXEC) != 0) throw IoError("sweep.start", words.front(), errno);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    const int error =
        execute(parent, in.descriptor(), out ? out->descriptor() : STDOUT_FILENO,
                err ? err->descriptor() : STDERR_FILENO, const_cast<char**>(command.data()),
                const_cast<char**>(environment.data()));
    [[maybe_unused]] const auto written = write(failure[1], &error, sizeof error);
    _exit(127);
  }
  const int fork_error = errno;
  close(failure[1]);
  int error = pid < 0 ? fork_error : 0;
  if (pid > 0 && read(failure[0], &error, sizeof error) != sizeof error) error = 0;
  close(failure[0]);
  if (error != 0) {
    if (pid > 0) waitpid(pid, nullptr, 0);
    throw IoError("sweep.start", words.front(), error);
  }
  *this = Child(pid);
}

Child::Child(pid_t pid) : pid_(pid) {
  descriptor_ = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (descriptor_ >= 0) return;
  const int error = errno;
  send(SIGKILL);
  waitpid(pid, nullptr, 0);
  throw IoError("sweep.start", "a descriptor of the process", error);
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), descriptor_(std::exchange(other.descriptor_, -1)) {}

Child& Child::operator=(Child&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Child::~Child() {
  if (pid_ > 0) {
    send(SIGKILL);
    try {
      (void)wait();
    } catch (const IoError& error) {
      log::error(error.what());
    }
  }
}

ChildEnd Child::wait() {
  const pid_t pid = std::exchange(pid_, 0);
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  kill(-pid, SIGKILL);  // its group may outlive it; the number is its own until it is waited for
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) throw IoError("sweep.wait", "process " + std::to_string(pid), errno);
  }
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
  if (WIFSIGNALED(status)) return {.signal = WTERMSIG(status)};
  return {.exit_code = WEXITSTATUS(status)};
}

bool Child::has_ended() {
  pollfd end{descriptor_, POLLIN, 0};
  return poll(&end, 1, 0) > 0;
}

void Child::send(int signal) {
  if (pid_ > 0) kill(-pid_, signal);
}

int64_t computed_ticks(int64_t pid) { return stat_of(pid, 14) + stat_of(pid, 15); }

ProcessId process_id_of(int64_t pid) { return {pid, boot_id(), started_ticks(pid)}; }

bool is_alive(const ProcessId& id) {
  return id.pid > 0 && id.boot_id == boot_id() && id.started_ticks > 0 &&
         started_ticks(id.pid) == id.started_ticks;
}

}  // namespace tare::launch
