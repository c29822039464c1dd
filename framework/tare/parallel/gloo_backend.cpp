// Connects ranks by Gloo, and waits until Gloo's threads let go of tensors.
#include "tare/parallel/gloo_backend.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace tare::parallel {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Keeps the signal of a broken pipe from the threads that are made as long as it lives: Gloo
/// writes to ranks that may have ended, and would end the process.
class WithoutBrokenPipes {
 public:
  WithoutBrokenPipes() {
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before_);
  }
  ~WithoutBrokenPipes() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  WithoutBrokenPipes(const WithoutBrokenPipes&) = delete;
  WithoutBrokenPipes& operator=(const WithoutBrokenPipes&) = delete;

 private:
  sigset_t before_{};
};

c10::intrusive_ptr<c10d::ProcessGroupGloo::Options> options_of(const World& world,
                                                               milliseconds timeout) {
  auto options = c10d::ProcessGroupGloo::Options::create(timeout);
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  if (interface && *interface)
    options->devices = {c10d::ProcessGroupGloo::createDeviceForInterface(interface)};
  else if (world.local_size == world.size)
    options->devices = {c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")};
  else
    options->devices = {c10d::ProcessGroupGloo::createDefaultDevice()};
  return options;
}

}  // namespace

bool GlooBackend::is_settled() {
  const std::lock_guard lock(workMutex_);
  return std::ranges::none_of(workInProgress_, [](const c10::intrusive_ptr<AsyncWork>& work) {
    return work && work->getFuture()->completed();
  });
}

void GlooBackend::settle(milliseconds most) {
  constexpr milliseconds kBusy{
      1};  // in which a thread lets go, unless another program has its core
  const auto start = Clock::now();
  while (!is_settled()) {
    const auto waited = Clock::now() - start;
    if (waited > most) return;
    if (waited < kBusy)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

c10::intrusive_ptr<GlooBackend> connect_gloo(const c10::intrusive_ptr<c10d::Store>& store,
                                             const World& world, milliseconds timeout) {
  const WithoutBrokenPipes quiet;
  return c10::make_intrusive<GlooBackend>(store, static_cast<int>(world.rank),
                                          static_cast<int>(world.size), options_of(world, timeout));
}

}  // namespace tare::parallel
