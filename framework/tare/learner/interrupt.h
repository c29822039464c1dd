// Turns Ctrl-C and SIGTERM into a clean stop: the step in flight is finished, the fit returns
// StopReason::interrupted.
#pragma once

namespace tare {

/// While alive, SIGINT and SIGTERM set a flag that every fit reads after each step. A second signal
/// of either kind ends the process at once, as it would without the scope. Scopes do not nest:
/// constructing a second one throws StateError. The library never makes one by itself; a program
/// does.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();  ///< puts the handlers from before back
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  /// The signal received, or 0. 128 + it is the exit code that a program should give.
  [[nodiscard]] int signal() const;
};

/// Asks the running fit to stop after its step, from any thread or from a callback.
void request_interrupt();
/// Whether a stop was asked for; a fit that stops for it clears the request.
[[nodiscard]] bool interrupt_requested();
void clear_interrupt();

}  // namespace tare
