// Shrinks and grows a size within the rules of its policy.
#include "tare/adapt/step_size.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "tare/base/error.h"

namespace tare::adapt {
namespace {

constexpr int64_t kMaxPatience = int64_t{1} << 20;

int64_t quotient_up(int64_t a, int64_t b) { return (a - 1) / b + 1; }

}  // namespace

void Policy::check(const char* where) const {
  const auto at_least = [&](const char* field, int64_t value, int64_t least) {
    if (value >= least) return;
    throw ConfigError(where, field, "must be >= " + std::to_string(least), "",
                      std::to_string(value));
  };
  at_least("floor", floor, 1);
  at_least("multiple_of", multiple_of, 1);
  at_least("regrow_after", regrow_after, 0);
  if (!(shrink > 0 && shrink < 1))
    throw ConfigError(where, "shrink", "must be > 0 and < 1", "", std::to_string(shrink));
}

int64_t even_size(int64_t total, int64_t size) {
  return size >= total ? total : quotient_up(total, quotient_up(total, size));
}

StepSize::StepSize(int64_t limit, const Policy& policy, const char* where)
    : limit_(limit), size_(limit), policy_(policy), patience_(policy.regrow_after) {
  policy.check(where);
  if (limit < 1) throw ConfigError(where, "size must be >= 1, got " + std::to_string(limit));
}

int64_t StepSize::rounded(int64_t size) const {
  if (size > policy_.multiple_of) size -= size % policy_.multiple_of;
  size = std::clamp(size, std::min(policy_.floor, limit_), limit_);
  return policy_.even ? even_size(limit_, size) : size;
}

bool StepSize::same_rules(const StepSize& other) const {
  return limit_ == other.limit_ && policy_ == other.policy_;
}

void StepSize::start_at(int64_t size) { set(rounded(size)); }

bool StepSize::shrink(int64_t tried, int64_t next) {
  if (next < 1 || next >= tried)
    next = static_cast<int64_t>(static_cast<double>(tried) * policy_.shrink);
  const int64_t size = rounded(next);
  if (size >= tried) return false;
  patience_ = !on_trial_                     ? policy_.regrow_after
              : patience_ < kMaxPatience / 2 ? 2 * patience_
                                             : std::max(patience_, kMaxPatience);
  on_trial_ = false;
  set(size);
  return true;
}

void StepSize::set(int64_t size) {
  size_ = size;
  clean_ = 0;
  bytes_per_item_ = 0;
}

void StepSize::clean(int64_t done, int64_t peak_bytes) {
  if (++clean_ >= patience_ && on_trial_) {
    on_trial_ = false;
    patience_ = policy_.regrow_after;
  }
  bytes_per_item_ =
      std::max(bytes_per_item_, static_cast<double>(peak_bytes) / static_cast<double>(done));
}

bool StepSize::due() const { return shrunken() && patience_ > 0 && clean_ >= patience_; }

bool StepSize::grow(int64_t available_bytes) {
  clean_ = 0;
  auto most = std::min(static_cast<double>(size_) / policy_.shrink, static_cast<double>(limit_));
  if (bytes_per_item_ > 0)
    most = std::min(most, static_cast<double>(available_bytes) / bytes_per_item_);
  if (most <= static_cast<double>(size_)) return false;
  const int64_t size = rounded(std::min(limit_, static_cast<int64_t>(most)));
  if (size <= size_) return false;
  set(size);
  on_trial_ = true;
  return true;
}

}  // namespace tare::adapt
