// Queues copies on a stream beside that of the computation.
#include "tare/memory/side_work.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <mutex>
#include <unordered_map>

#include "tare/base/immortal.h"

namespace tare::memory {
namespace {

using c10::impl::VirtualGuardImpl;

/// Returns the stream for copies, one for each device.
c10::Stream side_stream(c10::Device device) {
  static Immortal<std::mutex> mutex;
  static Immortal<std::unordered_map<c10::Device, c10::Stream>> streams;
  const std::lock_guard lock(*mutex);
  const auto found = streams->find(device);
  if (found != streams->end()) return found->second;
  return streams->emplace(device, VirtualGuardImpl(device.type()).getNewStream(device))
      .first->second;
}

}  // namespace

SideWork::SideWork(c10::Device device) : device_(device) {
  if (!has_streams(device)) return;
  given_.emplace(device.type());
  done_ = std::make_shared<c10::Event>(device.type());
}

void SideWork::run(const std::function<void()>& copies) {
  if (!done_) return copies();
  const c10::Stream side = side_stream(device_);
  given_->record(VirtualGuardImpl(device_.type()).getStream(device_));
  given_->block(side);
  const c10::StreamGuard on(side);
  try {
    copies();
  } catch (...) {
    done_->record(side);  // some may be under way
    throw;
  }
  done_->record(side);
}

void SideWork::join() const {
  if (done_) done_->block(VirtualGuardImpl(device_.type()).getStream(device_));
}

}  // namespace tare::memory
