// Takes from traces of a fit what a model of many devices needs.
#include "tare/plan/scale_fit.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/callback/flop_count.h"
#include "tare/callback/peak_rates.h"
#include "tare/memory/backend.h"
#include "tare/model/block.h"
#include "tare/parallel/data_parallel.h"
#include "tare/plan/no_budget.h"
#include "tare/plan/plan_fit.h"
#include "tare/train/layer_shapes.h"

namespace tare {
namespace {

using plan::ScaleParameter;
using plan::ScalePlan;
using plan::ScaleUnit;
using plan::ScaleWork;

/// Holds what a step of a fit was seen to do.
struct SeenStep {
  struct BlockSeen {
    std::string name{};
    int64_t flops_before = 0;  // of the forward since the block before
    int64_t flops = 0;         // of its own forward
    int64_t output_bytes = 0;
  };
  std::vector<BlockSeen> blocks{};  // in the order in which they compute
  int64_t flops_behind = 0;         // of the forward, behind the last block
  Flops all{};
  int64_t forward_flops = 0;
  bool counted = false;
  int64_t samples = 0;
  std::vector<ScaleParameter> parameters{};
  std::vector<std::string> block_names{};
  int64_t buffer_bytes = 0;
};

/// Counts the operations of the forward by block.
class BlockNote final : public BlockObserver {
 public:
  BlockNote(Model& model, const FlopCount& count, SeenStep& seen) : count_(count), seen_(seen) {
    for (const std::string& name : model.blocks()) names_[&model.submodule(name)] = name;
  }
  void enter(const torch::nn::Module& block) override {
    const int64_t now = flops();
    seen_.blocks.push_back({.name = names_[&block], .flops_before = now - last_});
    last_ = now;
  }
  void leave(const torch::nn::Module&, const at::Tensor& output) override {
    const int64_t now = flops();
    seen_.blocks.back().flops = now - last_;
    seen_.blocks.back().output_bytes = static_cast<int64_t>(output.nbytes());
    last_ = now;
  }
  /// Returns the operations since the last block.
  [[nodiscard]] int64_t behind() const { return flops() - last_; }

 private:
  [[nodiscard]] int64_t flops() const {
    const auto all = count_.flops();
    return all ? all->total() : last_;
  }

  const FlopCount& count_;
  SeenStep& seen_;
  std::map<const torch::nn::Module*, std::string> names_;
  int64_t last_ = 0;
};

/// Watches the first step of a fit that is traced.
class StepNote final : public Callback {
 public:
  StepNote(std::shared_ptr<SeenStep> seen, bool on_card)
      : seen_(std::move(seen)), on_card_(on_card) {}
  [[nodiscard]] std::string name() const override { return "step_note"; }
  [[nodiscard]] CallbackPtr planned() const override {
    return std::make_shared<StepNote>(seen_, on_card_);
  }

  Action before_batch(FitContext& context) override {
    if (seen_->samples > 0) return Action::proceed;
    count_ = FlopCount::begin();
    if (count_) blocks_ = std::make_unique<BlockNote>(context.learner.model(), *count_, *seen_);
    return Action::proceed;
  }
  Action after_loss(FitContext& context) override {
    if (!count_) return Action::proceed;
    seen_->samples = context.data.size();
    seen_->flops_behind = blocks_->behind();
    blocks_.reset();
    if (const auto flops = count_->flops()) seen_->forward_flops = flops->total();
    return Action::proceed;
  }
  Action after_backward(FitContext&) override {
    if (!count_ || seen_->samples == 0) return Action::proceed;
    const auto flops = count_->flops();
    seen_->counted = flops.has_value();
    if (flops) seen_->all = *flops;
    count_.reset();
    return Action::proceed;
  }
  Action after_batch(FitContext& context) override {
    if (!seen_->parameters.empty()) return Action::proceed;
    Model& model = context.learner.model();
    seen_->block_names = model.blocks();
    for (const Parameter& one : model.parameters()) {
      const auto bytes = static_cast<int64_t>(one.tensor.nbytes());
      seen_->parameters.push_back({.name = one.name,
                                   .bytes = bytes,
                                   .trained_bytes = one.tensor.requires_grad() ? bytes : 0});
    }
    for (const auto& one : model.buffers())
      seen_->buffer_bytes += static_cast<int64_t>(one.tensor.nbytes());
    for (const auto& state : context.learner.optimizer().state())
      for (ScaleParameter& one : seen_->parameters)
        if (state.name.ends_with('/' + one.name)) one.state_bytes += held_bytes(state.tensor);
    return Action::proceed;
  }
  Action after_fit(FitContext&) override {
    blocks_.reset();
    count_.reset();
    return Action::proceed;
  }

 private:
  /// Returns what a tensor takes of the device.
  [[nodiscard]] int64_t held_bytes(const at::Tensor& tensor) const {
    constexpr int64_t kBlock = 512;  // kMinBlockSize of c10/core/AllocatorConfig.h
    const auto bytes = static_cast<int64_t>(tensor.nbytes());
    return on_card_ ? (bytes + kBlock - 1) / kBlock * kBlock : bytes;
  }

  std::shared_ptr<SeenStep> seen_;
  bool on_card_;  // of the plan
  std::unique_ptr<FlopCount> count_;
  std::unique_ptr<BlockNote> blocks_;
};

/// Traces the fit of one process with `samples` in a batch. It is traced for a card, where the
/// operators are the fewest, so that no kernel of the host is tried.
SeenStep see_step(PlanRequest request, int64_t samples) {
  const auto seen = std::make_shared<SeenStep>();
  const bool on_card = request.machine.is_card();
  request.ranks = 1;
  request.valid.reset();
  if (!on_card) request.machine = plan::Machine::card;
  request.options.batch = samples;
  request.options.data_parallel = {};
  request.options.callbacks = {std::make_shared<StepNote>(seen, on_card)};
  (void)trace_fit(request, samples, {.train = samples, .valid = samples});
  return *seen;
}

/// Returns the name of the block that has a parameter, or else of its module.
std::string unit_of(const std::string& parameter, const std::vector<std::string>& blocks) {
  for (const std::string& block : blocks)
    if (parameter.starts_with(block + '.')) return block;
  return module_of(parameter);
}

/// Divides the model into units, and the operations over them. Those between two blocks belong to
/// the modules there, by their bytes, as of linear layers; without a module to the block before.
std::vector<ScaleUnit> units_of(SeenStep& seen) {
  std::vector<ScaleUnit> units;
  std::vector<double> bytes;
  for (ScaleParameter& one : seen.parameters) {
    const std::string name = unit_of(one.name, seen.block_names);
    const auto found = std::ranges::find(units, name, &ScaleUnit::name);
    one.unit = static_cast<size_t>(found - units.begin());
    if (found == units.end()) {
      units.push_back({.name = name, .is_block = std::ranges::count(seen.block_names, name) > 0});
      bytes.push_back(0);
    }
    bytes[one.unit] += static_cast<double>(one.bytes);
  }
  if (units.empty()) return units;
  size_t next = 0;  // the first unit that is not computed yet
  const auto spread = [&](size_t end, double flops) {
    double all = 0;
    for (size_t i = next; i < end; ++i) all += bytes[i];
    for (size_t i = next; i < end; ++i) units[i].share += flops * bytes[i] / all;
    if (all == 0) units[end > 0 ? end - 1 : 0].share += flops;
  };
  for (const auto& block : seen.blocks) {
    const auto found = std::ranges::find(units, block.name, &ScaleUnit::name);
    if (found == units.end()) continue;  // it has no parameters
    const auto at = static_cast<size_t>(found - units.begin());
    if (at >= next) spread(at, static_cast<double>(block.flops_before));
    found->share += static_cast<double>(block.flops);
    found->output_bytes = block.output_bytes / seen.samples;
    next = std::max(next, at + 1);
  }
  spread(units.size(), static_cast<double>(seen.flops_behind));
  double all = 0;
  for (const ScaleUnit& unit : units) all += unit.share;
  for (ScaleUnit& unit : units)
    unit.share = all > 0 ? unit.share / all : 1 / static_cast<double>(units.size());
  return units;
}

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g", value);
  return text.data();
}

/// Returns the operations by the second of the best of some products of matrices on this host.
double matrix_rate() {
  const NoBudget unbounded;
  constexpr int64_t kSide = 768;
  const c10::AutoGradMode no_grad(false);
  const at::Tensor left = at::ones({kSide, kSide}), right = at::ones({kSide, kSide});
  double best_s = std::numeric_limits<double>::infinity();
  constexpr int kTries = 4;  // the first one sets up
  for (int i = 0; i < kTries; ++i) {
    const auto start = std::chrono::steady_clock::now();
    (void)at::mm(left, right);
    best_s = std::min(
        best_s, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return 2 * static_cast<double>(kSide * kSide * kSide) / best_s;
}

/// Returns the name by which the driver calls a card that a plan names; A100 for one of which the
/// size alone is known, as everywhere in a plan.
std::string driver_name(const plan::Target& target) {
  if (target.card) return memory::backend(*target.card).name();
  struct Named {
    std::string_view planned;
    const char* driver;
  };
  constexpr std::array kNames{
      Named{"cuda:A10", "NVIDIA A10"},
      Named{"cuda:A100-40GB", "NVIDIA A100-SXM4-40GB"},
      Named{"cuda:A100-80GB", "NVIDIA A100-SXM4-80GB"},
      Named{"cuda:B200", "NVIDIA B200"},
      Named{"cuda:H100", "NVIDIA H100 80GB HBM3"},
      Named{"cuda:H200", "NVIDIA H200"},
      Named{"cuda:L4", "NVIDIA L4"},
      Named{"cuda:L40S", "NVIDIA L40S"},
      Named{"cuda:RTX3090", "NVIDIA GeForce RTX 3090"},
      Named{"cuda:RTX4090", "NVIDIA GeForce RTX 4090"},
      Named{"cuda:T4", "Tesla T4"},
      Named{"cuda:V100-16GB", "Tesla V100-SXM2-16GB"},
      Named{"cuda:V100-32GB", "Tesla V100-SXM2-32GB"},
  };
  const auto* const found = std::ranges::find(kNames, target.name, &Named::planned);
  return found == kNames.end() ? "NVIDIA A100-SXM4-80GB" : found->driver;
}

/// Sets the time of a sample and says how it is known.
void set_time(ScalePlan& result, const SeenStep& seen, const PlanRequest& request,
              const plan::Target& target, const plan::ScaleOptions& options) {
  if (options.batch_s) {
    result.sample_s = *options.batch_s / static_cast<double>(result.batch);
    result.computation =
        "one device computes a batch in " + format_seconds(*options.batch_s) + ", as given";
    return;
  }
  if (!seen.counted || seen.all.total() == 0) return;
  const auto samples = static_cast<double>(seen.samples);
  result.sample_flops = seen.all.total() / seen.samples;
  const double sample_flops = static_cast<double>(seen.all.total()) / samples;
  std::string rate;
  if (options.rate) {
    result.sample_s = sample_flops / *options.rate;
    rate = number(*options.rate / 1e12) + " TFLOP/s, as given";
  } else if (target.caches) {
    Flops flops = seen.all;
    if (request.options.kernels.tf32.value_or(false)) flops.tf32 += std::exchange(flops.fp32, 0);
    const std::string card = driver_name(target);
    const auto peak = peak_rates(card);
    const auto seconds = peak ? peak->seconds(flops) : std::nullopt;
    if (!seconds) return;
    result.sample_s = *seconds / plan::kPeakShare / samples;
    rate = number(100 * plan::kPeakShare) + " % of the peak of " + card;
  } else {
    static const double measured = matrix_rate();  // one for all phases
    result.sample_s = sample_flops / (plan::kPeakShare * measured);
    rate = number(100 * plan::kPeakShare) + " % of the " + number(measured / 1e9) +
           " GFLOP/s at which this host multiplies matrices now";
  }
  result.computation = number(sample_flops / 1e9) + " GFLOP for a sample at " + rate;
}

/// Returns the plan of a data parallel rank, also where it does not fit.
MemoryPlan plan_data_parallel(PlanRequest request, plan::Target target, const MemoryPlan& planned) {
  const bool is_there =
      request.options.data_parallel.shard == "none" && planned.known() && planned.peak_bytes > 0;
  if (is_there) return planned;
  request.options.data_parallel.shard = "none";
  target.capacity_bytes = std::numeric_limits<int64_t>::max() / 4;  // so that it goes through all
  return plan_fit(request, target, /*advice=*/false);
}

/// Puts the bytes of a data parallel rank into `work`.
void set_bytes(ScaleWork& work, const MemoryPlan& base, const PlanRequest& request,
               const plan::Target& target) {
  const int64_t own = work.own_samples();
  const int64_t part =
      base.in_micro_batches ? base.largest_micro_batch : request.options.micro_batch.value_or(own);
  work.parts = (own - 1) / std::clamp<int64_t>(part, 1, own) + 1;
  work.bytes =
      base.start_bytes + (base.in_micro_batches ? base.micro_batch_peak_bytes : base.peak_bytes);
  work.cached_bytes =
      std::max<int64_t>(0, base.reserved_bytes - base.start_bytes - base.peak_bytes);
  if (base.in_micro_batches)  // it is of the whole batch, and the micro-batches fit
    work.cached_bytes = std::min(work.cached_bytes, target.capacity_bytes - work.bytes);
}

/// Puts the bytes of the strategies into `work` that ranks can be planned with, in parts as those
/// of a data parallel rank. Returns the strategies that the options of the recipe rule out, and
/// says why in `refused`.
std::set<plan::Strategy> plan_shards(ScaleWork& work, PlanRequest request, plan::Target target,
                                     std::vector<std::string>& refused) {
  std::set<plan::Strategy> ruled_out;
  target.capacity_bytes = std::numeric_limits<int64_t>::max() / 4;
  request.options.micro_batch = (work.own_samples() + work.parts - 1) / work.parts;
  request.options.data_parallel.compression = "none";  // which some of them do not take
  for (const auto& [shard, strategy] : {std::pair("optimizer", plan::Strategy::zero1),
                                        std::pair("gradients", plan::Strategy::zero2),
                                        std::pair("parameters", plan::Strategy::zero3)}) {
    request.options.data_parallel.shard = shard;
    try {
      const MemoryPlan found = plan_fit(request, target, /*advice=*/false);
      if (found.known()) work.planned_bytes[strategy] = found.start_bytes + found.peak_bytes;
    } catch (const ConfigError& error) {
      ruled_out.insert(strategy);
      refused.push_back(std::string(plan::to_string(strategy)) + " is not possible: " +
                        error.field() + ' ' + error.problem() + ", got " + error.got());
    }
  }
  return ruled_out;
}

/// Puts what a step was seen to do into `work`.
void set_step(ScaleWork& work, SeenStep seen) {
  work.buffer_bytes = seen.buffer_bytes;
  work.units = units_of(seen);
  work.parameters = std::move(seen.parameters);
  if (seen.counted && seen.all.total() > 0)
    work.forward_share =
        static_cast<double>(seen.forward_flops) / static_cast<double>(seen.all.total());
}

}  // namespace

ScalePlan scale_fit(PlanRequest request, const plan::Target& target, const MemoryPlan& planned,
                    const plan::ScaleOptions& options) {
  const parallel::DataParallelOptions& exchange = request.options.data_parallel;
  ScaleWork work{.ranks = request.ranks,
                 .batch = request.options.batch,
                 .bucket_bytes = static_cast<double>(parallel::bucket_bytes(exchange)),
                 .sent_share = exchange.compression == "fp16" ? 0.5 : 1};
  ScalePlan result{.name = planned.name,
                   .cluster = options.cluster,
                   .ranks = work.ranks,
                   .batch = work.batch,
                   .own = work.own_samples()};
  if (!planned.recompute.empty()) request.options.recompute = planned.recompute;
  const MemoryPlan base = plan_data_parallel(request, target, planned);
  result.reason = base.reason;
  if (!base.known()) return result;
  result.not_counted = base.not_counted;
  std::set<plan::Strategy> ruled_out;
  try {
    SeenStep seen = see_step(request, result.own);
    set_bytes(work, base, request, target);
    if (base.method == "meta")  // a probe would compute each
      ruled_out = plan_shards(work, request, target, result.refused);
    set_time(result, seen, request, target, options);
    set_step(work, std::move(seen));
    result.reason.clear();  // why a probe was taken
  } catch (const plan::NotPlannable& error) {
    result.reason = error.reason();
    return result;
  } catch (const c10::Error& error) {
    result.reason = printable(error.what_without_backtrace());
    return result;
  }
  result.parts = work.parts;
  work.sample_s = result.sample_s;
  result.rows = plan::scale(work, options.cluster, target.capacity_bytes);
  std::erase_if(result.rows,
                [&](const plan::ScaleRow& row) { return ruled_out.contains(row.strategy); });
  return result;
}

}  // namespace tare
