// Time of a plan against the step that it plans: resnet34 on images of 3x32x32, batch 256, AdamW.
//
// Run: OMP_NUM_THREADS=1 build/bin/bench_plan [rounds]
#include <tare/tare.h>
#include <torch/torch.h>

#include "bench/paired.h"
#include "tare/plan/host_peak.h"

namespace {

using namespace tare;

constexpr int64_t kBatch = 256, kSide = 32;

void step() {
  Model model = models::make("resnet34", {.sample_shape = {3, kSide, kSide}});
  const OptimizerOptions options;
  const auto optimizer = make_optimizer(options, make_groups(model, options));
  const auto loss = resolve(Loss("cross_entropy"));
  model.train(true);
  loss.mean(model.forward(torch::rand({kBatch, 3, kSide, kSide})),
            torch::zeros({kBatch}, torch::kLong))
      .backward();
  optimizer->step();
}

double planned() {
  return bench::seconds([] { static_cast<void>(plan::host_peak(plan::trace(step))); });
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 7;
  init();
  std::printf("first plan of the process %.3g ms\n", 1e3 * planned());
  const memory::PeakScope scope(c10::kCPU);
  step();
  std::printf("peak planned %lld bytes, measured %lld\n",
              static_cast<long long>(plan::host_peak(plan::trace(step)).whole.peak_bytes),
              static_cast<long long>(scope.peak_above_start_bytes()));
  std::puts("median of ratios, [quartiles]");
  bench::print("a plan against a plan (control)", bench::paired(rounds, planned, planned));
  bench::print("a plan against the step",
               bench::paired(
                   rounds, [] { return bench::seconds(step); }, planned));
}
