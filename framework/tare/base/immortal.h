// Immortal: a static object that is never destroyed.
#pragma once

#include <utility>

namespace tare {

/// Holds a T that outlives every other static object, so that a destructor that runs at exit may
/// still use it: `static Immortal<Registry> registry;` inside a function. The memory that T owns is
/// the system's to take back.
template <class T>
class Immortal {
 public:
  /// Makes the object from `args`, which its constructor takes.
  template <class... Args>
  explicit Immortal(Args&&... args) : value_(std::forward<Args>(args)...) {}
  ~Immortal() {}
  Immortal(const Immortal&) = delete;
  Immortal& operator=(const Immortal&) = delete;

  T& operator*() noexcept { return value_; }    ///< the object, which is never destroyed
  T* operator->() noexcept { return &value_; }  ///< gives access to the object's members

 private:
  union {
    T value_;  // a member of a union is not destroyed with it
  };
};

}  // namespace tare
