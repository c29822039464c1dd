// Data parallel in one process, as in PyTorch's tutorials: the batch is split over several devices,
// the model is replicated there, the loss is computed on each replica, and gradients are gathered.
// Ranks (docs/distributed.md) are the better choice where processes can be started.
//
// Run: build/bin/replicas [DEVICE...]     Expect: an accuracy above 0.9, and losses that equal
// those of one device. Without arguments: all cards; on a machine without cards, the host twice.
#include <torch/nn.h>

#include <cmath>
#include <vector>

#include "planned_fit.h"

namespace {

using namespace tare;

constexpr int64_t kEpochs = 3;

Model net() { return models::make("mlp", {.sample_shape = {1, 16, 16}, .hidden = {64}}); }

std::vector<std::string> devices_of(int argc, char** argv) {
  std::vector<std::string> devices(argv + 1, argv + argc);
  if (devices.empty())
    for (const c10::Device device : memory::devices())
      if (!device.is_cpu()) devices.push_back(device.str());
  return devices.empty() ? std::vector<std::string>{"cpu", "cpu"} : devices;
}

std::vector<EpochRow> fit(const std::string& device, const Task& task) {
  torch::manual_seed(3);
  LearnerOptions options = options_for("replicas");
  options.device = device;
  options.batch = 100;
  options.task = task;
  const auto data =
      datasets::make({.name = "generated_digits", .size = 16, .count = 4000, .style = "written"});
  Learner learner(net(), data.splits, options);
  const FitResult result = learner.fit(kEpochs, {.lr = 1e-2});
  learner.destroy();
  return result.epochs;
}

}  // namespace

int main(int argc, char** argv) try {
  init();
  const std::vector<std::string> devices = devices_of(argc, argv);
  const auto several = fit(devices.front(), replicated(net, devices, "cross_entropy"));
  const auto one = fit(devices.front(), {});
  double largest = 0;
  for (size_t epoch = 0; epoch < one.size(); ++epoch)
    largest = std::max(largest, std::abs(one[epoch].valid_loss - several[epoch].valid_loss));
  std::cout << devices.size() << " replicas, accuracy " << several.back().metrics.front().value
            << ", largest difference of the losses to those of one device " << largest << '\n';
  return largest < 1e-4 && several.back().metrics.front().value > 0.9 ? 0 : 1;
} catch (...) {
  return tare::report_error(std::current_exception());
}
