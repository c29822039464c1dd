// Keeps the switch that turns Tare's kernels of the host off.
#include "tare/memory/reference_kernels.h"

#include <atomic>

namespace tare::memory {
namespace {
std::atomic<bool> reference{false};
}  // namespace

bool reference_kernels() { return reference.load(std::memory_order_relaxed); }
void set_reference_kernels(bool on) { reference = on; }

}  // namespace tare::memory
