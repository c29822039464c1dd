// Products of float32 matrices by oneDNN against MKL, with MKL against itself: ratios of time in
// interleaved rounds, for products of the sizes of networks. Which of them a training has oneDNN
// compute is marked by *.
//
//   bench_products [threads] [rounds]
#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <tuple>
#include <vector>

#include "bench/paired.h"
#include "tare/memory/host_products.h"
#include "tare/runtime/init.h"

namespace {

using tare::memory::ProductsBy;
using torch::Tensor;

constexpr double kRoundFlops = 2e8;  // some milliseconds

struct Product {
  Tensor a, b;
  int repeats = 1;
};

void multiply(const Product& of, ProductsBy by) {
  const tare::memory::ProductsScope scope(by);
  for (int i = 0; i < of.repeats; ++i) static_cast<void>(at::mm(of.a, of.b));
}

}  // namespace

int main(int argc, char** argv) {
  tare::init({.threads = argc > 1 ? std::atoi(argv[1]) : 1, .cuda = tare::CudaMode::off});
  if (!tare::memory::onednn_multiplies()) {
    std::puts("oneDNN multiplies float32 only on processors with AVX-512");
    return 0;
  }
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 15;
  const torch::NoGradGuard without_graph;
  const tare::memory::ProductsScope onednn(ProductsBy::onednn);
  std::printf("%-34s %s\n", "rows x inner x columns", "oneDNN / MKL [quartiles], control, GFLOP/s");
  for (const auto& [rows, inner, columns] :
       std::vector<std::array<int64_t, 3>>{{32, 784, 128},
                                           {128, 128, 128},
                                           {128, 512, 512},
                                           {200, 200, 200},
                                           {256, 256, 256},
                                           {8, 1024, 1024},
                                           {65, 1024, 192},
                                           {1024, 192, 65},
                                           {1024, 192, 576},
                                           {1024, 768, 192},
                                           {192, 1024, 576},
                                           {4096, 64, 64},
                                           {64, 4096, 64},
                                           {1024, 1024, 1024}}) {
    const double flops = 2.0 * static_cast<double>(rows * inner * columns);
    // The forward, the gradient of the input and that of the weights.
    for (const auto& [name, a, b] :
         {std::tuple("x W^T", torch::randn({rows, inner}), torch::randn({columns, inner}).t()),
          std::tuple("g W", torch::randn({rows, inner}), torch::randn({inner, columns})),
          std::tuple("g^T x", torch::randn({inner, rows}).t(), torch::randn({inner, columns}))}) {
      const Product product{a, b, std::max(1, static_cast<int>(kRoundFlops / flops))};
      const auto side = [&product](ProductsBy by) {
        return [&product, by] { return tare::bench::seconds([&] { multiply(product, by); }); };
      };
      const auto mkl = side(ProductsBy::libtorch);
      const auto ratio = tare::bench::paired(rounds, mkl, side(ProductsBy::onednn_always));
      const auto control = tare::bench::paired(rounds, mkl, mkl);
      const double all = flops * product.repeats / 1e9;
      std::printf("%c %5ld x %5ld x %5ld  %-8s %.2f [%.2f, %.2f], %.2f, %.1f against %.1f\n",
                  tare::memory::by_onednn(a, b) ? '*' : ' ', rows, inner, columns, name,
                  ratio.median, ratio.low, ratio.high, control.median, all / ratio.second_s,
                  all / ratio.first_s);
    }
  }
}
