// Recomputing: marks the forwards that a backward does again, for those who count work once.
#pragma once

namespace tare {

/// Marks what the calling thread computes while it is in scope as done before: the forward of a
/// block that its backward does again, see Activations::recompute.
class Recomputing {
 public:
  Recomputing() noexcept;
  ~Recomputing();
  Recomputing(const Recomputing&) = delete;
  Recomputing& operator=(const Recomputing&) = delete;

  /// Whether the calling thread is in such a scope.
  [[nodiscard]] static bool is_under_way() noexcept;

 private:
  bool before_;
};

}  // namespace tare
