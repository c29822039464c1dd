// Declares of Gloo's class what LibTorch's header calls. The wheel of LibTorch has Gloo's code, and
// not its headers; Tare only passes pointers to these classes on. Internal.
#pragma once

#include <chrono>

namespace gloo {

/// Connects the ranks of a group.
class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);  ///< of every operation
};

}  // namespace gloo
