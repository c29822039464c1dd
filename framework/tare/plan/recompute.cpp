// Measures what each block keeps and costs, and chooses those to recompute.
#include "tare/plan/recompute.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <new>
#include <unordered_map>

#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/memory/backend.h"
#include "tare/memory/oom.h"
#include "tare/model/block.h"
#include "tare/model/generators.h"
#include "tare/plan/fit_probe.h"
#include "tare/plan/plan_fit.h"

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
  /// Returns the cost in the last forward; zeros for a block that no forward has reached.
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

/// A fit of two steps of four samples, the first of which sets up what must not count.
constexpr FitShape kTwoSteps{
    .micro_batch = 4,

    .train = {.whole = {.samples = 4, .smallest = 4}, .last = {}, .count = 2},
    .valid = {}};

/// Returns the blocks of the request's model that save memory; first come the blocks whose forward
/// takes the least time for a byte saved (the greedy policy of PyTorch's SACEstimator). Measured in
/// two steps of four samples of the request's fit, with a model of its own. Throws what that
/// throws, and plan::NotPlannable if it may be too large for this host.
std::vector<std::string> blocks_by_cost(const PlanRequest& request) {
  require_memory_for(request);
  const GeneratorScope keep(c10::kCPU);
  std::vector<BlockCost> blocks;
  PlanRequest watched = request;
  watched.options.recompute.clear();
  if (!request.on_host()) watched.options.precision = "fp32";  // the host may be slow in another
  watched.model = [&] {
    Model model = request.model();
    for (auto& name : model.blocks()) {
      const auto* module = &model.submodule(name);
      blocks.push_back({std::move(name), module});
    }
    return model;
  };
  CostMeter meter;
  (void)trace_real_fit(watched, kTwoSteps);
  for (auto& block : blocks) block.cost = meter.of(block.module);
  std::erase_if(blocks, [](const BlockCost& block) { return block.cost.saved_bytes <= 0; });
  std::ranges::stable_sort(blocks, {}, [](const auto& b) { return b.cost.seconds_per_byte(); });
  std::vector<std::string> names;
  for (auto& block : blocks) names.push_back(std::move(block.name));
  return names;
}

/// Returns how many blocks of `order`, from the first on, suffice to fit; unset if even all do not.
std::optional<size_t> enough_of(size_t all, const std::function<bool(size_t)>& fit) {
  if (!fit(all)) return std::nullopt;
  size_t enough = all, few = 0;  // the first `few` do not fit
  while (enough - few > 1) {
    const size_t middle = few + (enough - few) / 2;
    (fit(middle) ? enough : few) = middle;
  }
  return enough;
}

}  // namespace

std::vector<std::string> recomputable(const PlanRequest& request) {
  std::string reason;
  try {
    return blocks_by_cost(request);
  } catch (const plan::NotPlannable& error) {
    reason = error.reason();
  } catch (const Error& error) {
    reason = error.what();
  } catch (const c10::Error& error) {
    reason = error.what_without_backtrace();
  } catch (const std::bad_alloc&) {
    reason = "out of memory";
  }
  log::info("recompute: auto takes blocks from the first on, unmeasured: " + printable(reason));
  const plan::MetaScope meta;
  return request.model().blocks();
}

std::vector<std::string> choose_recompute(PlanRequest& request, plan::Target target,
                                          std::optional<int64_t> available_bytes) {
  if (!is_auto(request.options.recompute)) return {};
  request.options.recompute.clear();
  PlanRequest bound = request;
  if (request.on_host()) bound.options.precision = "fp32";  // 16-bit types take less there
  const int64_t batch = request.options.micro_batch.value_or(request.options.batch);
  const auto fit = [&] { return fits(bound, target, batch); };
  const auto fits_with = [&](const std::vector<std::string>& blocks, int64_t samples) {
    bound.options.recompute = blocks;
    try {
      return fits(bound, target, samples);
    } catch (const c10::Error&) {  // out of memory, or an error that came before without a block
      return false;
    } catch (const plan::NotPlannable&) {
      return false;
    }
  };
  std::string reason;
  try {
    if (available_bytes)
      target.capacity_bytes = start_bytes(bound, target, batch) + *available_bytes;
    if (fit()) return {};
  } catch (const OutOfMemory&) {  // of one convolution of few images: then it does not fit
  } catch (const plan::NotPlannable& error) {
    reason = error.reason();
  } catch (const c10::Error& error) {
    reason = error.what_without_backtrace();
  }
  if (!reason.empty()) {
    log::warning("recompute: auto keeps everything: " + printable(reason));
    return {};
  }
  auto order = recomputable(request);
  const auto first = [&](size_t blocks) {
    return std::vector(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(blocks));
  };
  const auto enough = enough_of(order.size(), [&](size_t n) { return fits_with(first(n), batch); });
  // Where all blocks are not enough, the batch is divided; a block may take more for one sample
  // than its activations.
  if (enough)
    request.options.recompute = first(*enough);
  else if (fits_with(order, 1) || !fits_with({}, 1))
    request.options.recompute = order;
  return order;
}

}  // namespace tare
