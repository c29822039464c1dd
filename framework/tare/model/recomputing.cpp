// Keeps the mark of each thread.
#include "tare/model/recomputing.h"

#include <utility>

namespace tare {
namespace {

thread_local bool under_way = false;

}  // namespace

Recomputing::Recomputing() noexcept : before_(std::exchange(under_way, true)) {}

Recomputing::~Recomputing() { under_way = before_; }

bool Recomputing::is_under_way() noexcept { return under_way; }

}  // namespace tare
