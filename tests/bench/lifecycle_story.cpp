// The fastai memory story in C++: fit the head, purge, unfreeze, fit all, purge, export, destroy.
// Prints per phase the tracked bytes (exact) and the resident memory of the process, as
// tests/golden/lifecycle_story.py does for Python torch with the same network, batch and optimizer.
//
// Run: OMP_NUM_THREADS=1 build/bin/lifecycle_story
#include <tare/tare.h>
#include <torch/torch.h>

#include <cstdio>
#include <fstream>
#include <iostream>

#include "tare/memory/machine.h"

namespace {

using namespace tare;

constexpr int64_t kWidth = 1024, kBatch = 256, kSteps = 20;

torch::nn::Sequential make_model() {
  using torch::nn::Linear;
  return torch::nn::Sequential(Linear(784, kWidth), torch::nn::ReLU(), Linear(kWidth, kWidth),
                               torch::nn::ReLU(), Linear(kWidth, kWidth), torch::nn::ReLU(),
                               Linear(kWidth, 10));
}

void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

int64_t resident_peak() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) * 1024;
  }
  return 0;
}

Splits data() {
  return {.train = tensor_dataset(torch::rand({kBatch * kSteps, 784}),
                                  torch::randint(10, {kBatch * kSteps}))};
}

template <class Work>
void phase(const char* name, Learner& learner, Work&& work) {
  const int64_t start = memory::resident_bytes();
  reset_peak();
  Experiment stage(name, learner, {.out = nullptr});
  work(stage);
  const int64_t consumed = memory::resident_bytes() - start, peak = resident_peak() - start;
  const DeviceReport report = stage.finish().on(c10::kCPU);
  const int64_t residual = memory::resident_bytes() - start;
  const auto mib = [](int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  std::printf(
      "%-8s resident: peak %8.1f MiB  reclaimed %8.1f MiB  residual %8.1f MiB   tracked: peak "
      "%8.1f MiB  reclaimed %8.1f "
      "MiB  residual %lld B\n",
      name, mib(peak), mib(consumed - residual), mib(residual), mib(report.peak_bytes),
      mib(report.reclaimed.allocated_bytes), static_cast<long long>(report.residual_bytes()));
}

void fit(Learner& learner, Experiment& stage) {
  stage.emplace<DataScope>("data", learner, data(), kBatch);
  learner.fit(1, {.lr = 1e-3});
}

LearnerOptions options() {
  LearnerOptions o;
  o.device = "cpu";
  o.batch = kBatch;
  o.workers = 0;
  o.progress = false;
  return o;
}

}  // namespace

int main() {
  init();
  {
    Learner warm(torch::nn::Sequential(torch::nn::Linear(784, 10)), data(), options());
    warm.fit(1);  // loads kernels and thread pools, which no phase should pay for
  }
  memory::backend(c10::kCPU).reclaim();
  const int64_t tracked = memory::backend(c10::kCPU).usage().allocated_bytes,
                resident = memory::resident_bytes();
  auto learner = std::make_unique<Learner>(make_model(), Splits{}, options());
  phase("head", *learner, [&](Experiment& stage) {
    learner->freeze();
    fit(*learner, stage);
  });
  phase("all", *learner, [&](Experiment& stage) {
    learner->unfreeze();
    fit(*learner, stage);
  });
  phase("export", *learner, [&](Experiment&) { learner->export_to("/tmp/lifecycle_story.tare"); });
  std::remove("/tmp/lifecycle_story.tare");
  const PurgeReport end = learner->destroy();
  std::printf(
      "destroy  reclaimed %.1f MiB tracked; residual after destroy: resident %.1f MiB, tracked "
      "%lld B\n",
      static_cast<double>(end.total()) / (1 << 20),
      static_cast<double>(memory::resident_bytes() - resident) / (1 << 20),
      static_cast<long long>(memory::backend(c10::kCPU).usage().allocated_bytes - tracked));
}
