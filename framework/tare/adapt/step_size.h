// StepSize: how much is done at once; it shrinks when memory is out and grows back when memory is
// free again.
#pragma once

#include <cstdint>

namespace tare::adapt {

/// Sets the bounds of a size, and how it shrinks after a refusal and grows again.
struct Policy {
  int64_t floor = 1;          ///< smallest size that is tried, >= 1
  int64_t multiple_of = 1;    ///< sizes above it are multiples of it, >= 1
  double shrink = 0.5;        ///< factor after a refusal, > 0 and < 1
  int64_t regrow_after = 16;  ///< clean intervals before a larger size is tried, >= 0; 0: never
  bool even = false;          ///< sizes are those of nearly equal pieces of the limit

  /// Throws ConfigError, naming `where`, for a value out of range.
  void check(const char* where) const;
  bool operator==(const Policy&) const = default;
};

/// Returns the size of the largest piece if `total` is split into nearly equal pieces of at most
/// `size` >= 1, as few as possible.
[[nodiscard]] int64_t even_size(int64_t total, int64_t size);

/// Chooses a size. A value. It starts at its limit, which it never exceeds. When a size that was
/// grown to fails before as many clean intervals as led to it, it is tried again only after twice
/// as many: sizes do not swing.
class StepSize {
 public:
  /// Throws ConfigError, naming `where`, unless limit >= 1 and `policy` is in range.
  StepSize(int64_t limit, const Policy& policy, const char* where);

  [[nodiscard]] int64_t get() const { return size_; }     ///< returns the size, in [1, limit()]
  [[nodiscard]] int64_t limit() const { return limit_; }  ///< returns the largest size, as given
  /// Whether the size is below the limit.
  [[nodiscard]] bool shrunken() const { return size_ < limit_; }
  /// Whether both have equal limits and policies.
  [[nodiscard]] bool same_rules(const StepSize& other) const;

  /// Sets the size to what was found earlier, within floor and limit.
  void start_at(int64_t size);
  /// Notes that memory ran out in an interval of `tried` samples, which is at most get(). Continues
  /// with `next` if that is smaller and not below the floor, else by the policy. Returns false if
  /// the size cannot be smaller.
  [[nodiscard]] bool shrink(int64_t tried, int64_t next);
  /// Shrinks after a failure with `tried` samples; the policy decides the next size.
  [[nodiscard]] bool shrink(int64_t tried) { return shrink(tried, tried); }
  /// Notes that an interval of `done` samples succeeded, with a peak of `peak_bytes` above its
  /// start (0: unknown).
  void clean(int64_t done, int64_t peak_bytes);
  /// Whether there were enough clean intervals to try a larger size.
  [[nodiscard]] bool due() const;
  /// Takes the size that fits into so many bytes above an interval's start: by what the intervals
  /// at this size took, scaled, which is no less than it needs where bytes are an affine function
  /// of the size; at most one step of the policy. False: none is larger, and it is due again after
  /// as many clean intervals.
  bool grow(int64_t available_bytes);

 private:
  [[nodiscard]] int64_t rounded(int64_t size) const;
  void set(int64_t size);

  int64_t limit_, size_;
  Policy policy_;
  int64_t patience_;           // clean intervals before the next growth
  int64_t clean_ = 0;          // intervals at this size, or since a growth was declined
  bool on_trial_ = false;      // grown to, and not yet clean for as long again
  double bytes_per_item_ = 0;  // the most of any interval at this size
};

}  // namespace tare::adapt
