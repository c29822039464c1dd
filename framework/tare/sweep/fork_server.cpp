#include "tare/sweep/fork_server.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "tare/base/error.h"
#include "tare/base/io.h"

namespace tare::sweep {
namespace {

constexpr size_t kMaxMessage = size_t{64} << 10;
constexpr int kCannotStart = 127;  // as a shell's

int64_t threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

/// A request: texts that each end with a zero byte.
std::string message_of(const ChildStart& start) {
  std::vector<std::string> texts{start.out.string(), start.err.string(),
                                 std::to_string(start.environment.size())};
  for (const auto& [key, value] : start.environment) {
    texts.push_back(key);
    texts.push_back(value);
  }
  texts.insert(texts.end(), start.command.begin(), start.command.end());
  std::string message;
  for (const auto& text : texts) message += text + '\0';
  return message;
}

ChildStart start_of(std::string_view message) {
  std::vector<std::string> texts;
  for (size_t at = 0; at < message.size(); at = message.find('\0', at) + 1)
    texts.emplace_back(message.substr(at, message.find('\0', at) - at));
  ChildStart start{.out = texts.at(0), .err = texts.at(1)};
  size_t next = 3;
  for (size_t left = std::stoul(texts.at(2)); left > 0; --left, next += 2)
    start.environment.emplace_back(texts.at(next), texts.at(next + 1));
  start.command.assign(texts.begin() + static_cast<std::ptrdiff_t>(next), texts.end());
  return start;
}

[[noreturn]] void leave(int code) {
  std::cout.flush();
  std::fflush(nullptr);
  _exit(code);
}

bool use_as(const std::filesystem::path& file, int flags, int descriptor) {
  const int opened = open(file.c_str(), flags | O_CLOEXEC);
  return opened >= 0 && dup2(opened, descriptor) >= 0;
}

/// In a process that the server has forked twice: becomes a child of the coordinator, which takes
/// in what its descendants leave behind, and does the run.
[[noreturn]] void be_a_run(const ChildStart& start, const ForkMain& main, pid_t coordinator,
                           pid_t between, int socket) {
  while (getppid() == between) sched_yield();
  if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != coordinator)
    _exit(kCannotStart);
  const int64_t pid = getpid();
  if (send(socket, &pid, sizeof pid, 0) != sizeof pid) _exit(kCannotStart);
  close(socket);
  for (const auto& [key, value] : start.environment) setenv(key.c_str(), value.c_str(), 1);
  if (!use_as("/dev/null", O_RDONLY, 0) || !use_as(start.out, O_WRONLY | O_APPEND, 1) ||
      !use_as(start.err, O_WRONLY | O_APPEND, 2))
    _exit(kCannotStart);
  leave(main(start.command));
}

/// The server's whole life. A process between it and the run ends at once, so that the run is
/// nobody's child but the coordinator's.
[[noreturn]] void serve(const ForkMain& main, pid_t coordinator, int socket) {
  std::vector<char> buffer(kMaxMessage);
  while (true) {
    const ssize_t size = recv(socket, buffer.data(), buffer.size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) _exit(0);
    const ChildStart start = start_of({buffer.data(), static_cast<size_t>(size)});
    const pid_t between = fork();
    if (between == 0) {
      const pid_t self = getpid();
      const pid_t run = fork();
      if (run == 0) be_a_run(start, main, coordinator, self, socket);
      _exit(run < 0 ? errno : 0);
    }
    int status = 0;
    if (between > 0)
      while (waitpid(between, &status, 0) < 0 && errno == EINTR) {
      }
    const int64_t error = between < 0 ? errno : WEXITSTATUS(status);
    const int64_t reply = -error;
    if (error != 0 && send(socket, &reply, sizeof reply, 0) < 0) _exit(0);
  }
}

}  // namespace

ForkServer::ForkServer(const std::function<void()>& prepare, const ForkMain& main) {
  if (const int64_t count = threads(); count != 1)
    throw StateError("sweep.fork_server", "in a process of " + std::to_string(count) + " threads",
                     "make it before any thread");
  int ends[2];
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0 ||
      socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw IoError("sweep.fork_server", "a socket", errno);
  std::cout.flush();
  std::fflush(nullptr);
  const pid_t coordinator = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    std::signal(SIGCHLD, SIG_DFL);
    if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != coordinator)
      _exit(kCannotStart);
    prepare();
    serve(main, coordinator, ends[1]);
  }
  const int error = errno;
  close(ends[1]);
  socket_ = ends[0];
  pid_ = pid;
  if (pid < 0) {
    close(socket_);
    throw IoError("sweep.fork_server", "a process", error);
  }
}

ForkServer::~ForkServer() {
  close(socket_);
  kill(static_cast<pid_t>(pid_), SIGKILL);
  waitpid(static_cast<pid_t>(pid_), nullptr, 0);
}

Child ForkServer::start(const ChildStart& start) {
  const std::string message = message_of(start);
  if (message.size() > kMaxMessage) return Child(start);
  for (const auto& file : {start.out, start.err}) const io::File made(file, io::Mode::append);
  int64_t reply = 0;
  ssize_t size = send(socket_, message.data(), message.size(), MSG_NOSIGNAL);
  if (size >= 0) do {
      size = recv(socket_, &reply, sizeof reply, 0);
    } while (size < 0 && errno == EINTR);
  if (size != sizeof reply)
    throw IoError("sweep.start", start.command.front(), size < 0 ? errno : ECHILD);
  if (reply < 0) throw IoError("sweep.start", start.command.front(), static_cast<int>(-reply));
  return Child(static_cast<pid_t>(reply));
}

}  // namespace tare::sweep
