// A tensor of so many bytes, which the tests of the ledger follow.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

namespace tare::testing {

inline at::Tensor bytes_of(int64_t bytes) { return at::empty({bytes}, at::kByte); }

}  // namespace tare::testing
