// Five-fold cross-validation in one process: each fold builds, fits and destroys a Learner, and the
// tracked bytes are the same after each.
//
// Run: build/bin/kfold [SAMPLES]     Expect: about 96 % accuracy in each fold, "tracked" equal in
// every line.
#include <tare/runtime/exit_code.h>
#include <tare/tare.h>

#include <iostream>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "measured.h"

int main(int argc, char** argv) try {
  using namespace tare;
  constexpr int64_t kFolds = 5;
  init();
  const Measured measured;
  const DigitsSource digits = find_digits();
  std::cout << digits.description << '\n';
  DatasetPtr images = digits.data;
  if (argc > 1) {
    std::vector<int64_t> first(std::stoul(argv[1]));
    std::iota(first.begin(), first.end(), int64_t{0});
    images = subset(images, std::move(first));
  }
  const DatasetPtr data =
      transformed(images, {Normalise{.mean = {0.13}, .std = {0.31}}, Shift{.pixels = 2}});

  double sum = 0;
  for (int64_t k = 0; k < kFolds; ++k) {
    Learner learner(models::make("convnet"), fold(data, kFolds, k, /*seed=*/1),
                    {.metrics = {"accuracy"},
                     .device = "cpu",
                     .folder = "runs/kfold/fold-" + std::to_string(k),
                     .progress = false});
    learner.fit_one_cycle(3, {.max_lr = 5e-3});
    const double accuracy = learner.validate().metrics.at(0).value;
    sum += accuracy;
    learner.destroy();
    std::cout << "fold " << k << "  accuracy " << accuracy << "  tracked "
              << memory::backend(c10::kCPU).usage().allocated_bytes << " bytes\n";
  }
  std::cout << "mean accuracy " << sum / static_cast<double>(kFolds) << '\n';
} catch (...) {
  return tare::report_error(std::current_exception());
}
