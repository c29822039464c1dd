// Catches Ctrl-C and SIGTERM as a request to stop.
#include "tare/train/interrupt.h"

#include <signal.h>

#include <atomic>

#include "tare/base/error.h"

namespace tare {
namespace {

std::atomic<bool> requested{false};
std::atomic<int> received{0};
std::atomic<bool> may_repeat{false};  // SIGTERM
bool scope_alive = false;
struct sigaction before_int, before_term;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

// Only lock-free stores and async-signal-safe calls are allowed here.
void handle(int number) {
  if (received.exchange(number) != 0 && !(number == SIGTERM && may_repeat)) {
    ::signal(number, SIG_DFL);
    ::raise(number);
  }
  requested.store(true, std::memory_order_relaxed);
}

}  // namespace

InterruptScope::InterruptScope(bool term_repeats) {
  if (scope_alive)
    throw StateError("InterruptScope", "active already", "keep one scope around the whole run");
  struct sigaction action {};
  action.sa_handler = handle;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  received = 0;
  may_repeat = term_repeats;
  requested = false;
  ::sigaction(SIGINT, &action, &before_int);
  ::sigaction(SIGTERM, &action, &before_term);
  scope_alive = true;
}

InterruptScope::~InterruptScope() {
  ::sigaction(SIGINT, &before_int, nullptr);
  ::sigaction(SIGTERM, &before_term, nullptr);
  scope_alive = false;
  requested = false;
}

int InterruptScope::signal() const { return received.load(); }

void request_interrupt() { requested.store(true, std::memory_order_relaxed); }
bool interrupt_requested() { return requested.load(std::memory_order_relaxed); }
void clear_interrupt() { requested.store(false, std::memory_order_relaxed); }

}  // namespace tare
