// How the samples of a split are shared by ranks. Internal.
#pragma once

#include <cstdint>

namespace tare::parallel {

/// Returns how many of `samples`, > 0, the rank with most of them computes, where `ranks`, > 0,
/// share each batch of `batch` samples, 1 to `samples`, and the last one, which may be smaller.
[[nodiscard]] constexpr int64_t most_samples_of_a_rank(int64_t samples, int64_t batch,
                                                       int64_t ranks) {
  const auto share = [ranks](int64_t count) { return (count + ranks - 1) / ranks; };
  return samples / batch * share(batch) + share(samples % batch);
}

}  // namespace tare::parallel
