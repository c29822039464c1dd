// The places of the highest scores.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace tare {

/// Returns the indices of the `count` highest scores, or of all if there are fewer: the highest
/// first, and of equal ones the first. No score may be NaN.
template <class T>
[[nodiscard]] std::vector<size_t> highest(const std::vector<T>& scores, size_t count) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  count = std::min(count, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](size_t a, size_t b) {
                      return scores[a] > scores[b] || (scores[a] == scores[b] && a < b);
                    });
  order.resize(count);
  return order;
}

}  // namespace tare
