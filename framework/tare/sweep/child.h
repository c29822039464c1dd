// A run as a process of its own. Internal.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tare/sweep/store.h"

namespace tare::sweep {

struct ChildStart {
  std::vector<std::string> command{};                              ///< program and arguments
  std::filesystem::path out{}, err{};                              ///< appended to
  std::vector<std::pair<std::string, std::string>> environment{};  ///< added to this process's
};

/// How a process ended.
struct ChildEnd {
  int exit_code = 0;  ///< of exit(); meaningless after a signal
  int signal = 0;     ///< 0: it exited
};

/// Of a process of this machine. Throws IoError.
[[nodiscard]] ChildMark mark_of(int64_t pid);
/// Whether that very process is still there.
[[nodiscard]] bool is_alive(const ChildMark& mark);

/// A running child in a session of its own, which the system kills when this process ends. The
/// destructor kills and waits.
class Child {
 public:
  /// Throws IoError if the process cannot be made, or the program not executed.
  explicit Child(const ChildStart& start);
  /// Takes over a child of this process that leads a session of its own. Throws IoError, then
  /// without it.
  explicit Child(pid_t pid);
  ~Child();
  Child(Child&& other) noexcept;
  Child& operator=(Child&& other) noexcept;

  [[nodiscard]] ChildMark mark() const { return mark_of(pid_); }
  /// Readable once it has ended; for poll().
  [[nodiscard]] int descriptor() const { return descriptor_; }
  /// Waits for the end.
  ChildEnd wait();
  /// To its whole group. Without effect after its end.
  void send(int signal) const;

 private:
  pid_t pid_ = 0;  // 0: it has been waited for
  int descriptor_ = -1;
};

}  // namespace tare::sweep
