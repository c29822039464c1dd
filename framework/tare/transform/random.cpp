// Draws permutations.
#include "tare/transform/random.h"

#include <cstddef>
#include <numeric>
#include <utility>

namespace tare {

std::vector<int64_t> permutation(int64_t n, uint64_t seed) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  RandomBits bits(seed);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[bits.below(i)]);
  return order;
}

}  // namespace tare
