// Keeps the backward of strided 1x1 convolutions inside its memory. Internal.
#pragma once

namespace tare::memory {

/// Takes LibTorch's host kernel of aten::convolution_backward out of oneDNN's way where oneDNN
/// writes beyond its memory (github.com/uxlfoundation/oneDNN/issues/6035): in the gradient of the
/// weights of a convolution whose kernel has one element, whose stride is more than 1, whose input
/// or weights lie channels innermost, and which has fewer channels than a vector of the processor
/// has numbers. Such a call computes on copies that do not lie channels innermost. All other calls
/// are LibTorch's. For the life of the process; a second call does nothing. Thread-safe.
void keep_convolutions_in_bounds();

}  // namespace tare::memory
