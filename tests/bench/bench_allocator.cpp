// The host allocator against LibTorch's default one, in the same process: one pair of 256 bytes,
// and the blocks of a small training step. Prints the median of the ratios of neighbouring rounds
// with its quartiles, and the same of the default against itself (A/A): a ratio inside that band is
// no difference.
//   bench_allocator [rounds]    default 41
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "bench/paired.h"
#include "tare/memory/backend.h"
#include "tare/memory/host_allocator.h"

namespace tare::bench {
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

void report(const char* name, Work work, int rounds) {
  auto& ours = *c10::GetCPUAllocator();
  auto& theirs = *c10::GetDefaultCPUAllocator();
  const auto side = [work](c10::Allocator& a) {
    return [work, &a] { return seconds([&] { work(a); }); };
  };
  print((std::string(name) + ", default against default").c_str(),
        paired(rounds, side(theirs), side(theirs)));
  print((std::string(name) + ", ours against default").c_str(),
        paired(rounds, side(theirs), side(ours)));
}

}  // namespace
}  // namespace tare::bench

int main(int argc, char** argv) {
  using namespace tare::bench;
  const int rounds = argc > 1 ? std::max(3, std::atoi(argv[1])) : 41;
  if (!tare::memory::host_allocator::installed()) return 1;
  report("20,000 of 256 bytes", pairs, rounds);
  report("200 steps of an MLP", steps, rounds);
  const tare::memory::PeakScope outer(c10::kCPU), inner(c10::kCPU), innermost(c10::kCPU);
  report("20,000, 3 scopes", pairs, rounds);
  return 0;
}
