// The host allocator against LibTorch's default one, in the same process: one pair of 256 bytes,
// and the blocks of a small training step. Prints the median of the ratios of neighbouring rounds,
// and the same of the default against itself (A/A): a ratio inside that band is no difference.
//   bench_allocator [rounds]    default 41
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tare/memory/backend.h"
#include "tare/memory/host_allocator.h"

namespace {

constexpr int kPairs = 20000;
constexpr int kSteps = 200;

void pairs(c10::Allocator& allocator) {
  for (int i = 0; i < kPairs; ++i) static_cast<void>(allocator.allocate(256));
}

/// The shape of a step on an MLP: activations that live until the backward, gradients, short-lived
/// scratch.
void steps(c10::Allocator& allocator) {
  static const std::vector<size_t> kSizes = {8192, 16384, 16384, 1280,  1280,  4,
                                             128,  1280,  5120,  16384, 32768, 512};
  std::vector<c10::DataPtr> held;
  for (int step = 0; step < kSteps; ++step) {
    for (const size_t size : kSizes) {
      held.push_back(allocator.allocate(size));
      static_cast<void>(allocator.allocate(size / 2 + 1));
    }
    while (!held.empty()) held.pop_back();
  }
}

using Work = void (*)(c10::Allocator&);

double seconds(Work work, c10::Allocator& allocator) {
  const auto begin = std::chrono::steady_clock::now();
  work(allocator);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

struct Spread {
  double low, median, high;  ///< the quartiles and the middle
};

Spread spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values[values.size() / 4], values[values.size() / 2], values[3 * values.size() / 4]};
}

/// Time of a over time of b, round by round, the order alternating.
Spread ratio(Work work, c10::Allocator& a, c10::Allocator& b, int rounds) {
  std::vector<double> ratios;
  for (int round = 0; round < rounds; ++round) {
    const bool a_first = round % 2 == 0;
    const double first = seconds(work, a_first ? a : b);
    const double second = seconds(work, a_first ? b : a);
    ratios.push_back(a_first ? first / second : second / first);
  }
  return spread(std::move(ratios));
}

void report(const char* name, Work work, int allocations, int rounds) {
  auto& ours = *c10::GetCPUAllocator();
  auto& theirs = *c10::GetDefaultCPUAllocator();
  const double nanoseconds = 1e9 / allocations;
  const Spread control = ratio(work, theirs, theirs, rounds);
  const Spread measured = ratio(work, ours, theirs, rounds);
  std::printf(
      "%-22s %6.1f ns against %6.1f ns a pair   ratio %.3f (%.3f to %.3f)   A/A %.3f (%.3f to "
      "%.3f)\n",
      name, seconds(work, ours) * nanoseconds, seconds(work, theirs) * nanoseconds, measured.median,
      measured.low, measured.high, control.median, control.low, control.high);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(3, std::atoi(argv[1])) : 41;
  if (!tare::memory::host_allocator::installed()) return 1;
  report("256 bytes", pairs, kPairs, rounds);
  report("step of an MLP", steps, kSteps * 24, rounds);
  const tare::memory::PeakScope outer(c10::kCPU), inner(c10::kCPU), innermost(c10::kCPU);
  report("256 bytes, 3 scopes", pairs, kPairs, rounds);
  return 0;
}
