// A run as a process of its own.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace tare::launch {

/// Identifies a process of this machine, also to another process later; or a run that an executor
/// keeps elsewhere. A value.
struct ProcessId {
  int64_t pid = 0;            ///< 0: not a process of this machine
  std::string boot_id{};      ///< of the machine's current boot
  int64_t started_ticks = 0;  ///< of the process, since boot

  /// Names a run that an executor of this type keeps, which is no process of this machine.
  [[nodiscard]] static ProcessId of_executor(std::string type) {
    return {.boot_id = std::move(type)};
  }
  /// Returns the type of the executor that started the run; "" for a process of this machine.
  [[nodiscard]] std::string executor() const { return pid == 0 ? boot_id : std::string(); }
};

/// Describes how a run's process is started. A value.
struct ChildStart {
  std::string name{};                  ///< of the run
  std::vector<std::string> command{};  ///< program and arguments
  std::filesystem::path out{}, err{};  ///< appended to; empty: those of this process
  std::vector<std::pair<std::string, std::string>> environment{};  ///< added to this process's
};

/// Describes how a process ended.
struct ChildEnd {
  int exit_code = 0;   ///< of exit(); meaningless after a signal
  int signal = 0;      ///< 0: it exited
  bool saved = false;  ///< its place was taken away, and it can continue in another

  /// Whether SIGTERM ended it, also if it saved first.
  [[nodiscard]] bool was_stopped() const { return exit_code == 128 + SIGTERM || signal == SIGTERM; }
};

/// Represents a run that has been started.
class Process {
 public:
  virtual ~Process() = default;
  /// Returns the id by which another process recognises the run's process.
  [[nodiscard]] virtual ProcessId id() const = 0;
  /// Returns a descriptor for poll(), readable once the run has ended; -1: only has_ended() knows.
  [[nodiscard]] virtual int descriptor() const = 0;
  /// Whether the run has ended; does not wait.
  [[nodiscard]] virtual bool has_ended() = 0;
  /// Waits for the end.
  virtual ChildEnd wait() = 0;
  /// Sends the signal to all processes of the run. It has no effect after the end.
  virtual void send(int signal) = 0;
};

/// Returns the id of a process of this machine. Throws IoError.
[[nodiscard]] ProcessId process_id_of(int64_t pid);
/// Returns the time that a process has computed, in ticks of the system; 0: it has ended.
[[nodiscard]] int64_t computed_ticks(int64_t pid);
/// Whether that very process is still there.
[[nodiscard]] bool is_alive(const ProcessId& id);

/// Owns a running child in a session of its own, which the system kills when this process ends. The
/// destructor kills and waits.
class Child final : public Process {
 public:
  /// Throws IoError if the process cannot be made, or the program not executed.
  explicit Child(const ChildStart& start);
  /// Takes over a child of this process that leads a session of its own. Throws IoError, then
  /// without it.
  explicit Child(pid_t pid);
  ~Child() override;
  /// Takes the process over; `other` then owns none.
  Child(Child&& other) noexcept;
  /// Takes the process over; `other` then owns none.
  Child& operator=(Child&& other) noexcept;

  [[nodiscard]] ProcessId id() const override { return process_id_of(pid_); }
  [[nodiscard]] int descriptor() const override { return descriptor_; }
  [[nodiscard]] bool has_ended() override;
  ChildEnd wait() override;
  void send(int signal) override;  ///< signals its whole group

 private:
  pid_t pid_ = 0;  // 0: it has been waited for
  int descriptor_ = -1;
};

}  // namespace tare::launch
