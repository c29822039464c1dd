// A run as a process of its own. Internal.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "tare/sweep/store.h"

namespace tare::sweep {

struct ChildStart {
  std::string name{};                                              ///< of the run
  std::vector<std::string> command{};                              ///< program and arguments
  std::filesystem::path out{}, err{};                              ///< appended to
  std::vector<std::pair<std::string, std::string>> environment{};  ///< added to this process's
};

/// How a process ended.
struct ChildEnd {
  int exit_code = 0;   ///< of exit(); meaningless after a signal
  int signal = 0;      ///< 0: it exited
  bool saved = false;  ///< its place was taken away, and it can continue in another

  /// Whether SIGTERM ended it, also if it saved first.
  [[nodiscard]] bool was_stopped() const { return exit_code == 128 + SIGTERM || signal == SIGTERM; }
};

/// A run that is on.
class Process {
 public:
  virtual ~Process() = default;
  [[nodiscard]] virtual ChildMark mark() const = 0;
  /// Readable once it has ended, for poll(); -1: only has_ended() tells.
  [[nodiscard]] virtual int descriptor() const = 0;
  [[nodiscard]] virtual bool has_ended() = 0;
  /// Waits for the end.
  virtual ChildEnd wait() = 0;
  /// To all of it. Without effect after its end.
  virtual void send(int signal) = 0;
};

[[nodiscard]] std::string host_name();
/// Of a process of this machine. Throws IoError.
[[nodiscard]] ChildMark mark_of(int64_t pid);
/// Whether that very process is still there.
[[nodiscard]] bool is_alive(const ChildMark& mark);

/// A running child in a session of its own, which the system kills when this process ends. The
/// destructor kills and waits.
class Child final : public Process {
 public:
  /// Throws IoError if the process cannot be made, or the program not executed.
  explicit Child(const ChildStart& start);
  /// Takes over a child of this process that leads a session of its own. Throws IoError, then
  /// without it.
  explicit Child(pid_t pid);
  ~Child() override;
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;

  [[nodiscard]] ChildMark mark() const override { return mark_of(pid_); }
  [[nodiscard]] int descriptor() const override { return descriptor_; }
  [[nodiscard]] bool has_ended() override;
  ChildEnd wait() override;
  void send(int signal) override;  ///< to its whole group

 private:
  pid_t pid_ = 0;  // 0: it has been waited for
  int descriptor_ = -1;
};

}  // namespace tare::sweep
