// Waits for exchanges between devices, and notices ranks that do not take part.
#include "tare/parallel/device_link.h"

#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <optional>
#include <stdexcept>
#include <thread>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <utility>

#include "tare/base/log.h"
#include "tare/parallel/tracked_backend.h"

namespace tare::parallel {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kBusy{2};         // in which most exchanges end
constexpr milliseconds kLastWork{1000};  // of a device, after a rank that has done its own has left

}  // namespace

DeviceLink::DeviceLink(const memory::Collectives& collectives,
                       const memory::CollectivesMember& member)
    : name_(collectives.name()),
      device_(member.device),
      timeout_(member.timeout),
      backend_(collectives.connect(member)),
      tracked_(c10::make_intrusive<TrackedBackend>(backend_)) {}

DeviceLink::~DeviceLink() { stop(); }

c10::intrusive_ptr<c10d::Backend> DeviceLink::backend() const { return tracked_; }

void DeviceLink::wait(const Sockets& sockets) const {
  const auto fail = [this](const char* what) { throw std::runtime_error(name_ + ": " + what); };
  const auto has_failed = [this] { return backend_->getError() != c10d::ErrorType::SUCCESS; };
  // The end of an event makes the thread's device current again, and so a context on it.
  const c10::DeviceGuard current(device_);
  c10::Event done(device_.type());
  done.record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
  const auto start = Clock::now();
  std::optional<Clock::time_point> closed;
  while (!done.query() && !has_failed()) {
    const auto now = Clock::now();
    if (!closed && sockets.is_any_closed()) closed = now;
    if (closed && now - *closed > kLastWork) fail("a rank has closed its connection");
    if (now - start > timeout_) fail("a card waits for a rank that does not come");
    if (now - start < kBusy)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  if (has_failed()) fail("a connection is lost");
  tracked_->release();
}

void DeviceLink::stop() noexcept {
  if (std::exchange(has_ended_, true)) return;
  try {
    backend_->abort();
  } catch (const std::exception& error) {
    log::warning("[ranks] " + name_ + " did not stop: " + error.what());
  }
}

void DeviceLink::leave(const Sockets& sockets) noexcept {
  if (has_ended_) return;
  try {
    wait(sockets);
    backend_->shutdown();
    has_ended_ = true;
  } catch (const std::exception& error) {
    log::warning("[ranks] " + name_ + " did not end as it should: " + error.what());
    stop();
  }
}

}  // namespace tare::parallel
