#include "tare/learner/block_cost.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>

#include "tare/learner/fit_probe.h"
#include "tare/memory/backend.h"
#include "tare/model/block.h"
#include "tare/model/generators.h"

namespace tare {
namespace {

using Clock = std::chrono::steady_clock;

int64_t tracked() { return memory::backend(c10::kCPU).usage().allocated_bytes; }

class CostMeter final : public BlockObserver {
 public:
  struct Cost {
    int64_t saved_bytes = 0;
    double seconds = 0;
    [[nodiscard]] double seconds_per_byte() const {
      return seconds / static_cast<double>(saved_bytes);
    }
  };

  void enter(const torch::nn::Module&) override {
    bytes_ = tracked();
    started_ = Clock::now();
  }
  // The output stays either way: it is the next block's input.
  void leave(const torch::nn::Module& block, const at::Tensor& output) override {
    const std::chrono::duration<double> took = Clock::now() - started_;
    const int64_t saved = tracked() - bytes_ - static_cast<int64_t>(output.nbytes());
    costs_[&block] = {saved, took.count()};
  }
  /// In the last forward; zeros for a block that none has reached.
  [[nodiscard]] Cost of(const torch::nn::Module* block) const {
    const auto found = costs_.find(block);
    return found == costs_.end() ? Cost{} : found->second;
  }

 private:
  std::unordered_map<const torch::nn::Module*, Cost> costs_;
  int64_t bytes_ = 0;
  Clock::time_point started_{};
};

struct BlockCost {
  std::string name{};
  const torch::nn::Module* module = nullptr;
  CostMeter::Cost cost{};
};

/// Two steps of four samples, the first of which sets up what must not count.
constexpr FitShape kTwoSteps{.train = {.batch = 4, .size = 8}, .valid = {}};

}  // namespace

std::vector<std::string> blocks_by_cost(const FitSubject& subject) {
  require_room(subject);
  const GeneratorScope keep(c10::kCPU);
  std::vector<BlockCost> blocks;
  FitSubject watched = subject;
  watched.options.recompute.clear();
  watched.model = [&] {
    Model model = subject.model();
    for (auto& name : model.blocks()) {
      const auto* module = &model.submodule(name);
      blocks.push_back({std::move(name), module});
    }
    return model;
  };
  const CostMeter meter;
  (void)trace_real_fit(watched, kTwoSteps);
  for (auto& block : blocks) block.cost = meter.of(block.module);
  std::erase_if(blocks, [](const BlockCost& block) { return block.cost.saved_bytes <= 0; });
  std::ranges::stable_sort(blocks, {}, [](const auto& b) { return b.cost.seconds_per_byte(); });
  std::vector<std::string> names;
  for (auto& block : blocks) names.push_back(std::move(block.name));
  return names;
}

}  // namespace tare
