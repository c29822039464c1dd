// InterruptScope: Ctrl-C and SIGTERM end a fit cleanly. It finishes the step in flight and returns
// StopReason::interrupted.
#pragma once

namespace tare {

/// Lets SIGINT and SIGTERM, while alive, set a flag that every fit reads after each batch. A second
/// signal ends the process at once, as without the scope. Scopes do not nest: a second one throws
/// StateError. Made by programs; the library never installs a signal handler by itself.
class InterruptScope {
 public:
  /// Begins to catch the signals. `term_repeats`: SIGTERM may come twice for one request, as Slurm
  /// and srun both send it to the tasks of a job. Then a second SIGTERM has no effect.
  explicit InterruptScope(bool term_repeats = false);
  ~InterruptScope();  ///< restores the previous handlers
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  /// Returns the signal received, or 0. A program should then exit with 128 + signal.
  [[nodiscard]] int signal() const;
};

/// Asks the running fit to stop after its batch. May be called from any thread and from callbacks.
void request_interrupt();
/// Whether a stop was requested; a fit that stops for it clears the request.
[[nodiscard]] bool interrupt_requested();
/// Withdraws the request.
void clear_interrupt();

}  // namespace tare
