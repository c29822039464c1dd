// Serves forks of a process that has everything loaded.
#include "tare/launch/fork_server.h"

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
#include "tare/base/log.h"

namespace tare::launch {
namespace {

constexpr size_t kMaxMessage = size_t{64} << 10;
constexpr int kCannotStart = 127;  // as a shell's

int64_t threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

/// Returns a request: texts that each end with a zero byte.
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

[[noreturn]] void end_process(int code) {
  std::cout.flush();
  std::fflush(nullptr);
  _exit(code);
}

bool use_as(const std::filesystem::path& file, int flags, int descriptor) {
  const int opened = open(file.c_str(), flags | O_CLOEXEC);
  return opened >= 0 && dup2(opened, descriptor) >= 0;
}

/// Called in a process that the server has forked twice: becomes a child of the coordinator, which
/// takes in what its descendants leave behind, waits for a request, says so to the server, and does
/// the run.
[[noreturn]] void be_a_run(const ForkMain& main, pid_t coordinator, pid_t between, int socket,
                           int taken) {
  while (getppid() == between) sched_yield();
  if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != coordinator)
    _exit(kCannotStart);
  std::vector<char> buffer(kMaxMessage);
  ssize_t size = -1;
  do {
    size = recv(socket, buffer.data(), buffer.size(), 0);
  } while (size < 0 && errno == EINTR);
  if (size <= 0) _exit(0);
  const int64_t pid = getpid();
  if (send(socket, &pid, sizeof pid, 0) != sizeof pid) _exit(kCannotStart);
  close(taken);
  close(socket);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const ChildStart start = start_of({buffer.data(), static_cast<size_t>(size)});
  for (const auto& [key, value] : start.environment) setenv(key.c_str(), value.c_str(), 1);
  if (!use_as("/dev/null", O_RDONLY, 0) || !use_as(start.out, O_WRONLY | O_APPEND, 1) ||
      !use_as(start.err, O_WRONLY | O_APPEND, 2))
    _exit(kCannotStart);
  end_process(main(start.command));
}

/// Forks a process that waits for the next request. A process between it and the server ends at
/// once, so that it is nobody's child but the coordinator's. Returns an errno.
int fork_ahead(const ForkMain& main, pid_t coordinator, int socket, int taken) {
  const pid_t between = fork();
  if (between < 0) return errno;
  if (between == 0) {
    const pid_t self = getpid();
    const pid_t run = fork();
    if (run == 0) be_a_run(main, coordinator, self, socket, taken);
    _exit(run < 0 ? errno : 0);
  }
  int status = 0;
  while (waitpid(between, &status, 0) < 0 && errno == EINTR) {
  }
  return WEXITSTATUS(status);
}

/// Answers the next request with an error.
void refuse(int socket, int error) {
  char word = 0;
  ssize_t size = -1;
  do {
    size = recv(socket, &word, sizeof word, 0);
  } while (size < 0 && errno == EINTR);
  const int64_t reply = -error;
  if (size <= 0 || send(socket, &reply, sizeof reply, 0) < 0) _exit(0);
}

/// Runs the server until its end: one process always waits, so that a start takes no fork.
[[noreturn]] void serve(const ForkMain& main, pid_t coordinator, int socket) {
  while (true) {
    char word = 0;
    int taken[2];  // its end says that the process has a request, or is no more
    if (pipe2(taken, O_CLOEXEC) != 0) _exit(kCannotStart);
    int error = fork_ahead(main, coordinator, socket, taken[1]);
    if (error != 0) {  // again when a process is wanted
      (void)recv(socket, &word, sizeof word, MSG_PEEK);
      error = fork_ahead(main, coordinator, socket, taken[1]);
    }
    close(taken[1]);
    while (error == 0 && read(taken[0], &word, sizeof word) < 0 && errno == EINTR) {
    }
    close(taken[0]);
    if (error != 0) refuse(socket, error);
    if (recv(socket, &word, sizeof word, MSG_PEEK | MSG_DONTWAIT) == 0) _exit(0);
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

int64_t ForkServer::ask(const std::string& message) const {
  int64_t reply = 0;
  ssize_t size = send(socket_, message.data(), message.size(), MSG_NOSIGNAL);
  if (size >= 0) do {
      size = recv(socket_, &reply, sizeof reply, 0);
    } while (size < 0 && errno == EINTR);
  return size == sizeof reply ? reply : 0;
}

Child ForkServer::start(const ChildStart& start) {
  const std::string message = message_of(start);
  if (is_lost_ || message.size() > kMaxMessage) return Child(start);
  for (const auto& file : {start.out, start.err}) const io::File made(file, io::Mode::append);
  const int64_t reply = ask(message);
  if (reply == 0) {
    // This process has threads by now, and cannot fork another server.
    log::warning("[sweep.start] the server that forks runs was killed; runs are executed now");
    is_lost_ = true;
    return Child(start);
  }
  if (reply < 0) throw IoError("sweep.start", start.command.front(), static_cast<int>(-reply));
  return Child(static_cast<pid_t>(reply));
}

}  // namespace tare::launch
