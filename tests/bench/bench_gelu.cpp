// GELU by tanh and its derivative by Tare's kernels against LibTorch's, with LibTorch against
// itself: ratios of time in interleaved rounds.
//
//   bench_gelu [threads] [rounds]
#include <torch/torch.h>

#include <cstdio>
#include <cstdlib>
#include <functional>

#include "bench/paired.h"
#include "tare/memory/host_gelu.h"
#include "tare/memory/reference_kernels.h"
#include "tare/runtime/init.h"

namespace {

constexpr int kRepeats = 4;

/// Returns what times the work with the kernels of LibTorch or of Tare.
std::function<double()> side(const std::function<void()>& work, bool reference) {
  return [&work, reference] {
    tare::memory::set_reference_kernels(reference);
    const double seconds = tare::bench::seconds([&] {
      for (int i = 0; i < kRepeats; ++i) work();
    });
    tare::memory::set_reference_kernels(false);
    return seconds;
  };
}

}  // namespace

int main(int argc, char** argv) {
  tare::init({.threads = argc > 1 ? std::atoi(argv[1]) : 1, .cuda = tare::CudaMode::off});
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 31;
  if (!tare::memory::has_own_gelu()) {
    std::puts("Tare's GELU takes AVX2 and FMA");
    return 0;
  }
  const torch::NoGradGuard without_graph;
  std::puts("numbers   pass       Tare / LibTorch [quartiles], control, us of Tare");
  for (const int64_t count : {1'024, 32'768, 786'432}) {
    const torch::Tensor x = torch::randn({count}), above = torch::randn({count});
    const std::function<void()> forward = [&] { static_cast<void>(at::gelu(x, "tanh")); };
    const std::function<void()> backward = [&] {
      static_cast<void>(at::gelu_backward(above, x, "tanh"));
    };
    for (const auto& [name, work] :
         {std::pair("forward", &forward), std::pair("backward", &backward)}) {
      const auto libtorch = side(*work, true);
      const auto ratio = tare::bench::paired(rounds, libtorch, side(*work, false));
      const auto control = tare::bench::paired(rounds, libtorch, libtorch);
      std::printf("%-9ld %-10s %.2f [%.2f, %.2f], %.2f, %.0f\n", static_cast<long>(count), name,
                  ratio.median, ratio.low, ratio.high, control.median,
                  ratio.second_s / kRepeats * 1e6);
    }
  }
}
