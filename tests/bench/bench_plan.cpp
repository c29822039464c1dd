// Time of plans: of a step that this machine can do, against the step (resnet34 on images of
// 3x32x32, batch 256), and of two that it cannot: resnet50 on 3x224x224, batch 256, and a GPT of 7
// billion parameters on 2,048 tokens. With AdamW.
//
// Run: OMP_NUM_THREADS=1 build/bin/bench_plan [rounds [folder]]; in the folder a run finds what the
// one before it has measured.
#include <tare/tare.h>
#include <torch/torch.h>

#include "bench/paired.h"
#include "tare/trace/host_peak.h"
#include "tare/trace/measurements.h"

namespace {

using namespace tare;

struct Step {
  const char* name = "";
  const char* model = "";
  ModelOptions options{};
  int64_t batch = 0;
  bool tokens = false;

  void operator()() const {
    Model made = models::make(model, options);
    const OptimizerOptions adamw;
    const auto optimizer = make_optimizer(adamw, make_groups(made, adamw));
    const auto loss = resolve(Loss("cross_entropy"));
    made.train(true);
    std::vector<int64_t> sizes{batch};
    sizes.insert(sizes.end(), options.sample_shape.begin(), options.sample_shape.end());
    const auto input = tokens ? torch::zeros(sizes, torch::kLong) : torch::rand(sizes);
    const auto target = torch::zeros(tokens ? sizes : std::vector<int64_t>{batch}, torch::kLong);
    loss.mean(made.forward(input), target).backward();
    optimizer->step();
  }
};

const Step kSmall{"resnet34, batch 256 of 3x32x32", "resnet34", {.sample_shape = {3, 32, 32}}, 256};

std::vector<Step> large() {
  const Step resnet50{"resnet50, batch 256 of 3x224x224",
                      "resnet50",
                      {.classes = 1000, .sample_shape = {3, 224, 224}},
                      256};
  ModelOptions gpt{.classes = 50257, .sample_shape = {2048}};
  gpt.layers = 32, gpt.heads = 32, gpt.width = 4096;
  return {resnet50, {"gpt of 7 billion parameters, batch 1 of 2,048 tokens", "gpt", gpt, 1, true}};
}

double planned(const Step& step) {
  return bench::seconds([&] { static_cast<void>(plan::host_peak(plan::trace(step))); });
}

void print_times(const Step& step, int rounds) {
  const double first = planned(step);
  std::vector<double> again;
  for (int i = 0; i < rounds; ++i) again.push_back(planned(step));
  std::ranges::sort(again);
  const auto peak = plan::host_peak(plan::trace(step)).whole.peak_bytes;
  std::printf("%s: first plan of the process %.3g ms, then %.3g ms (median of %d); peak %.1f GiB\n",
              step.name, 1e3 * first, 1e3 * again[again.size() / 2], rounds,
              static_cast<double>(peak) / (1 << 30));
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 7;
  init();
  if (argc > 2) plan::measurements().keep_in(argv[2]);
  print_times(kSmall, rounds);
  for (const Step& step : large()) print_times(step, rounds);
  plan::measurements().save();
  const memory::PeakScope scope(c10::kCPU);
  kSmall();
  std::printf("%s: peak planned %lld bytes, measured %lld\n", kSmall.name,
              static_cast<long long>(plan::host_peak(plan::trace(kSmall)).whole.peak_bytes),
              static_cast<long long>(scope.peak_above_start_bytes()));
  std::puts("median of ratios, [quartiles]");
  const auto plan_small = [] { return planned(kSmall); };
  bench::print("a plan against a plan (control)", bench::paired(rounds, plan_small, plan_small));
  bench::print("a plan against the step",
               bench::paired(
                   rounds, [] { return bench::seconds(kSmall); }, plan_small));
}
