// Plans a fit from its trace, and searches what would make it fit.
#include "tare/plan/plan_fit.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "tare/adapt/step_size.h"
#include "tare/base/error.h"
#include "tare/memory/oom.h"
#include "tare/model/precision.h"
#include "tare/plan/fit_probe.h"
#include "tare/trace/card_workspace.h"
#include "tare/trace/trace_stages.h"

namespace tare {
namespace {

using plan::Estimate;
using plan::Target;

/// The largest size in [1, limit] that fits, if every smaller one does too; 0: none. Peaks are
/// nearly affine in the size, so the next guess is where the line through the last two meets the
/// capacity; every third time it is the middle, so that a bad line costs little.
class Search {
 public:
  Search(const Target& target, std::function<Estimate(int64_t)> at)
      : target_(target), at_(std::move(at)) {}

  [[nodiscard]] int64_t largest(int64_t first, int64_t limit) {
    if (limit < 1) return 0;
    bad_ = limit + 1;
    good_ = below_ = 0;
    look(std::clamp<int64_t>(first, 1, limit));
    if (good_ > 0 && good_ < limit) look(limit);
    while (bad_ - below_ > 1) look(std::clamp(guess(), below_ + 1, bad_ - 1));
    return good_;
  }

 private:
  struct Point {
    int64_t size = 0, bytes = 0;
  };

  void look(int64_t size) {
    try {
      const Estimate found = at_(size);
      if (found.fits)
        good_ = below_ = size;
      else
        bad_ = size;
      points_.push_back({size, found.reserved_bytes});
    } catch (const plan::NotPlannable&) {
      bad_ = size;
    } catch (const c10::Error&) {  // what the model refuses, such as one sample for a batch norm
      (size == 1 ? below_ : bad_) = size;
    }
  }

  [[nodiscard]] int64_t guess() {
    const int64_t middle = below_ + (bad_ - below_) / 2;
    if (points_.size() < 2 || ++guesses_ % 3 == 0) return middle;
    const Point &a = points_[points_.size() - 2], &b = points_.back();
    const auto rise = static_cast<double>(b.bytes - a.bytes);
    const auto run = static_cast<double>(b.size - a.size);
    const auto available = static_cast<double>(target_.capacity_bytes - b.bytes);
    const double next = static_cast<double>(b.size) + available * run / rise;
    if (!std::isfinite(next)) return middle;
    return static_cast<int64_t>(
        std::clamp(next, static_cast<double>(below_), static_cast<double>(bad_)));
  }

  const Target& target_;
  std::function<Estimate(int64_t)> at_;
  std::vector<Point> points_;
  int64_t good_ = 0;   // the largest that fits; 0: none
  int64_t below_ = 0;  // no size up to it needs a look
  int64_t bad_ = 0, guesses_ = 0;
};

/// Convolutions are tried on two images. If memory for one of them is refused even so, the fit,
/// with at least as many images, does not fit either.
MemoryPlan after_refusal(const OutOfMemory& error, const Target& target, int64_t batch) {
  if (target.caches || error.asked_bytes() <= target.capacity_bytes)
    return unknown_plan(target, batch, printable(error.what_without_backtrace()));
  MemoryPlan plan = plan_for(target, batch);
  plan.peak_bytes = plan.reserved_bytes = error.asked_bytes();
  plan.categories[Category::workspace] = error.asked_bytes();
  plan.at = "the scratch of one operator, at least";
  plan.fits = false;
  return plan;
}

class Planner {
 public:
  Planner(const PlanRequest& request, const Target& target) : request_(request), target_(target) {}

  /// Figures, advice if wanted, and micro-batches where the batch does not fit. A fit that cannot
  /// be predicted has method "none".
  [[nodiscard]] MemoryPlan plan(bool advice) {
    const int64_t batch = request_.options.batch;
    if (advice) warn_of_precision();
    try {
      MemoryPlan plan = figures();
      if (advice) advise(plan);
      add_micro_batches(plan);
      return plan;
    } catch (const OutOfMemory& error) {
      return after_refusal(error, target_, batch);
    } catch (const plan::NotPlannable& error) {
      return unknown_plan(target_, batch, error.reason());
    } catch (const c10::Error& error) {
      return unknown_plan(target_, batch, printable(error.what_without_backtrace()));
    }
  }

 private:
  /// A plan for the host needs no word here: it probes 16-bit types by a fit, which warns.
  void warn_of_precision() const {
    if (target_.caches && !target_.computes_bfloat16)
      warn_of_bfloat16_on_card(parse_precision(request_.options.precision, "plan"), target_.name);
  }

  /// Where memory is too short for a workspace, LibTorch takes the next algorithm of cuDNN
  /// (ATen/native/cudnn/Conv_v8.cpp), so that workspaces never take more than there is.
  [[nodiscard]] static int64_t at_most(const MemoryPlan& plan) {
    if (plan.not_counted.empty()) return plan.peak_bytes;
    const bool only_workspaces = plan.not_counted == std::vector<std::string>{plan::kWorkspaces};
    return only_workspaces && plan.peak_bytes <= plan.capacity_bytes - plan.start_bytes
               ? plan.capacity_bytes - plan.start_bytes
               : 0;
  }

  [[nodiscard]] MemoryPlan figures() {
    const int64_t batch = request_.options.batch;
    const Estimate found = estimate_of_ranks(batch);
    MemoryPlan plan = plan_for(target_, batch);
    plan.not_counted = not_counted_.value_or(std::vector<std::string>());
    plan.start_bytes = found.start_bytes;
    plan.peak_bytes = found.peak_bytes;
    plan.at_most_bytes = at_most(plan);
    plan.reserved_bytes = found.reserved_bytes;
    plan.categories = found.categories;
    plan.at = found.at;
    plan.fits = found.fits;
    plan.returns_cache = found.fits && found.returns_cache;
    plan.stages = stages_;
    plan.padding = padding_of(request_.train->data(), request_.options);
    if (probe_) {
      plan.method = "probe";
      plan.reason = why_probe_;
    }
    return plan;
  }

 public:
  /// Returns the largest micro-batch below `failed` that fits, as the size that the parts of a
  /// batch then have; 0: none. Where `failed` fits and returns the cache, none that returns it too.
  [[nodiscard]] int64_t largest_micro_batch(int64_t failed, bool failed_fits) {
    const int64_t batch = request_.options.batch;
    const auto at = [&](int64_t n) { return estimate(request_, batch, equal_parts(n)); };
    const int64_t found = failed_fits ? largest_at_ease(at, failed / 2, failed - 1)
                                      : largest(at, failed / 2, failed - 1);
    return found > 0 ? adapt::even_size(batch, found) : 0;
  }
  /// Returns the largest batch that fits; 0: none. The search begins with the training split, so
  /// that its result does not depend on the batch of the options: what an allocator holds may fall
  /// where a batch grows.
  [[nodiscard]] int64_t largest_batch() {
    const auto at = [&](int64_t n) { return estimate(request_, n, equal_parts(n)); };
    const int64_t all = request_.train->data()->size();
    return largest(at, probe_ ? request_.options.batch : all, all);
  }
  [[nodiscard]] Estimate estimate(int64_t micro_batch) {
    return estimate(request_, request_.options.batch, equal_parts(micro_batch));
  }
  /// Whether a run takes smaller parts than these, or has to.
  [[nodiscard]] bool is_cut(const Estimate& found) const {
    return !found.fits || (found.returns_cache && chooses_parts());
  }

 private:
  [[nodiscard]] bool chooses_parts() const {
    return !request_.options.micro_batch && !request_.options.step_in_backward;
  }
  /// Returns the largest size that fits and that a run does not cut; 0: none.
  [[nodiscard]] int64_t largest_at_ease(const std::function<Estimate(int64_t)>& at, int64_t first,
                                        int64_t limit) const {
    const auto uncut = [&](int64_t size) {
      Estimate found = at(size);
      found.fits = !is_cut(found);
      return found;
    };
    return Search(target_, uncut).largest(first, limit);
  }
  /// Returns the largest size that fits, and that a run does not cut if there is one; 0: none.
  [[nodiscard]] int64_t largest(const std::function<Estimate(int64_t)>& at, int64_t first,
                                int64_t limit) const {
    bool any_returns = false;
    const auto watched = [&](int64_t size) {
      Estimate found = at(size);
      any_returns = any_returns || found.returns_cache;
      return found;
    };
    const int64_t found = largest_at_ease(watched, first, limit);
    return found > 0 || !any_returns ? found : Search(target_, at).largest(first, limit);
  }

  /// Returns the largest micro-batch of the validations that fits beside training steps in
  /// micro-batches of `train` samples; `train` without validations.
  [[nodiscard]] int64_t largest_validation_micro_batch(int64_t train) {
    const int64_t batch = request_.options.batch;
    if (!request_.valid) return train;
    const auto at = [&](int64_t n) { return estimate(request_, batch, {train, n}); };
    const int64_t found = largest(at, batch, batch);
    return found > train ? adapt::even_size(batch, found) : train;
  }

  void add_micro_batches(MemoryPlan& plan) {
    if (!chooses_parts() || (plan.fits && !plan.returns_cache)) return;
    if (plan.largest_micro_batch == 0)
      plan.largest_micro_batch = largest_micro_batch(plan.batch, plan.fits);
    if (plan.largest_micro_batch == 0) return;
    plan.in_micro_batches = true;
    plan.fits = false;
    const int64_t train = plan.largest_micro_batch;
    plan.largest_validation_micro_batch = largest_validation_micro_batch(train);
    plan.micro_batch_peak_bytes =
        estimate(request_, plan.batch, {train, plan.largest_validation_micro_batch}).peak_bytes;
  }

  /// Returns the names of the model's blocks.
  [[nodiscard]] std::vector<std::string> blocks() const {
    const plan::MetaScope meta;
    return request_.model().blocks();
  }

  void advise(MemoryPlan& plan) {
    plan.largest_batch = largest_batch();
    if (plan.fits && !plan.returns_cache)
      plan.largest_batch =
          std::max(plan.largest_batch, std::min(plan.batch, request_.train->data()->size()));
    const int64_t micro_batch = own_micro_batch();
    const bool in_parts = !request_.options.step_in_backward;
    if (plan.fits && !(plan.returns_cache && chooses_parts())) {
      plan.largest_micro_batch = micro_batch;
    } else if (in_parts) {
      plan.largest_micro_batch = largest_micro_batch(micro_batch, plan.fits);
    }
    if (probe_) return;
    if (in_parts && micro_batch > 1) {
      const int64_t half = micro_batch / 2;
      save_by("micro_batch=" + std::to_string(half), request_, half, plan);
    }
    for (const auto& other : optimizers()) {
      PlanRequest changed = request_;
      changed.options.optimizer = other;
      save_by(assignments_of(other), changed, micro_batch, plan);
    }
    PlanRequest changed = request_;
    changed.options.recompute = {"all"};
    const bool has_blocks = !blocks().empty();
    if (has_blocks) save_by("recompute=all", changed, micro_batch, plan);
    changed.options.recompute = request_.options.recompute;
    changed.options.offload = {"all"};
    if (has_blocks && target_.caches) save_by("offload=all", changed, micro_batch, plan);
    if (request_.options.precision == "fp32" && target_.computes_bfloat16 && target_.caches) {
      changed = request_;
      changed.options.precision = "bf16";
      save_by("precision=bf16", changed, micro_batch, plan);
    } else if (request_.options.precision == "fp32" && target_.computes_bfloat16) {
      // A bound: half of the activations may stay, and other kernels may need no workspace.
      const int64_t gone =
          plan.categories[Category::activations] / 2 + plan.categories[Category::workspace];
      if (gone < plan.peak_bytes)
        plan.savings.push_back({"precision=bf16", plan.peak_bytes - gone, true});
    }
    std::erase_if(plan.savings, [&](const auto& s) { return s.peak_bytes >= plan.peak_bytes; });
    std::ranges::stable_sort(plan.savings, {}, &PlanSaving::peak_bytes);
  }

  [[nodiscard]] static PartSizes equal_parts(int64_t micro_batch) {
    return {micro_batch, micro_batch};
  }

  /// Returns the micro-batch of the options; the whole batch if the run finds the size.
  [[nodiscard]] int64_t own_micro_batch() const {
    const LearnerOptions& options = request_.options;
    return std::min(options.micro_batch.value_or(options.batch), options.batch);
  }

  /// The estimate is made by meta tensors, and where these do not suffice by a probe of the host.
  [[nodiscard]] Estimate first_estimate(int64_t batch) {
    try {
      return estimate(request_, batch, equal_parts(own_micro_batch()));
    } catch (const OutOfMemory&) {
      throw;
    } catch (const plan::NotPlannable& error) {
      if (target_.caches) throw;
      why_probe_ = error.reason();
    } catch (const c10::Error& error) {
      if (target_.caches) throw;
      why_probe_ = printable(error.what_without_backtrace());
    }
    probe_ = std::make_unique<FitProbe>(request_);
    return estimate(request_, batch, equal_parts(own_micro_batch()));
  }

  /// Chooses the rank that takes the most. Ranks without shards differ by the parts of an uneven
  /// batch alone, of which rank 0 has the largest; the first ranks own the largest parameters.
  [[nodiscard]] Estimate estimate_of_ranks(int64_t batch) {
    constexpr int64_t kTried = 8;
    Estimate most = first_estimate(batch);
    if (request_.options.data_parallel.shard == "none") return most;
    int64_t chosen = 0;
    bool probes = probe_ != nullptr;
    for (int64_t rank = 1; rank < std::min(request_.ranks, kTried); ++rank) {
      request_.rank = rank;
      probe_.reset();
      Estimate found = first_estimate(batch);
      if (found.peak_bytes <= most.peak_bytes) continue;
      most = std::move(found);
      chosen = rank;
      probes = probe_ != nullptr;
    }
    request_.rank = chosen;
    probe_.reset();
    if (probes) probe_ = std::make_unique<FitProbe>(request_);
    return most;
  }

  [[nodiscard]] Estimate estimate(const PlanRequest& request, int64_t batch,
                                  const PartSizes& parts) {
    const plan::MeasuredCard card(target_.card);
    const FitTrace fit = probe_ ? probe_->of(batch, parts) : trace_fit(request, batch, parts);
    if (!probe_ && !target_.caches) require_verified(fit.trace);
    if (target_.caches && !not_counted_) not_counted_ = plan::not_counted_on_card(fit.trace);
    return request.cards.size() < 2 ? plan::estimate(fit.trace, fit.counted, target_)
                                    : of_all_cards(request, fit);
  }

  /// Returns the sums over the cards, and notes the figures of each.
  [[nodiscard]] Estimate of_all_cards(const PlanRequest& request, const FitTrace& fit) {
    Estimate all;
    double fullest = 0;
    std::vector<StagePlan> stages = stages_without_figures(request);
    for (size_t i = 0; i < request.cards.size(); ++i) {
      const Target& card = request.cards[i];
      const auto [trace, section] = plan::trace_of_stage(fit.trace, fit.counted, i);
      const Estimate own = plan::estimate(trace, section, card);
      all.start_bytes += own.start_bytes;
      all.peak_bytes += own.peak_bytes;
      all.reserved_bytes += own.reserved_bytes;
      for (size_t c = 0; c < kCategories; ++c) all.categories.bytes[c] += own.categories.bytes[c];
      all.fits = all.fits && own.fits;
      all.returns_cache = all.returns_cache || own.returns_cache;
      const double share =
          static_cast<double>(own.reserved_bytes) / static_cast<double>(card.capacity_bytes);
      if (share > fullest) {
        fullest = share;
        all.at = card.name + ": " + own.at;
      }
      stages[i].start_bytes = own.start_bytes;
      stages[i].peak_bytes = own.peak_bytes;
      stages[i].reserved_bytes = own.reserved_bytes;
      stages[i].fits = own.fits;
    }
    if (stages_.empty()) stages_ = std::move(stages);  // of the first estimate
    return all;
  }

  /// Returns the stages of the model, without figures.
  [[nodiscard]] static std::vector<StagePlan> stages_without_figures(const PlanRequest& request) {
    const plan::MetaScope meta;
    const Model model = request.model();
    const parallel::Stages stages = stages_of(model, request, c10::kMeta);
    std::vector<StagePlan> all;
    for (size_t i = 0; i < stages.size(); ++i)
      all.push_back({.device = request.cards[i].name,
                     .groups = stages.groups_text(model, i),
                     .capacity_bytes = request.cards[i].capacity_bytes});
    return all;
  }

  /// Refuses operators whose memory nobody has compared with the host's: a plan never guesses.
  static void require_verified(const plan::Trace& trace) {
    const auto names = plan::unverified(trace);
    if (!names.empty())
      throw plan::NotPlannable(names.front(),
                               "takes memory of the host that shapes may not predict",
                               "plan a part without it");
  }

  void save_by(std::string change, const PlanRequest& request, int64_t micro_batch,
               MemoryPlan& plan) {
    try {
      const auto found = estimate(request, plan.batch, equal_parts(micro_batch));
      plan.savings.push_back({std::move(change), found.peak_bytes, !found.fits && target_.caches});
    } catch (const plan::NotPlannable&) {  // then there is no advice of this kind
    } catch (const c10::Error&) {
    }
  }

  /// Optimizers that keep less state than the one of the options.
  [[nodiscard]] std::vector<OptimizerOptions> optimizers() const {
    const OptimizerOptions& now = request_.options.optimizer;
    if (request_.options.optimizer_factory || !request_.options.optimizers.empty()) return {};
    std::vector<OptimizerOptions> others;
    const auto add = [&](std::optional<double> momentum) {
      others.push_back(now);
      others.back().kind = "sgd";
      others.back().options = {};  // of another kind
      others.back().momentum = momentum;
      others.back().beta2.reset();  // which sgd does not have
      others.back().eps.reset();
      if (momentum == 0) others.back().nesterov = false;
    };
    // The momentum that is given stays, because a one-cycle schedule refuses one that it sets.
    if (now.kind != "sgd") add(now.momentum == 0 ? std::nullopt : now.momentum);
    if (now.kind != "sgd" || momentum_of(now) > 0) add(0);
    return others;
  }
  /// Returns the assignments that turn the optimizer of the options into this one.
  [[nodiscard]] std::string assignments_of(const OptimizerOptions& other) const {
    const OptimizerOptions& now = request_.options.optimizer;
    std::string text = "optimizer.kind=" + other.kind;
    if (other.momentum != now.momentum)
      text += std::string(" optimizer.momentum=") + (other.momentum ? "0" : "null");
    if (now.beta2) text += " optimizer.beta2=null";
    if (now.eps) text += " optimizer.eps=null";
    if (now.nesterov != other.nesterov) text += " optimizer.nesterov=false";
    if (now.options != other.options) text += " optimizer.options={}";
    return text;
  }

  PlanRequest request_;
  const Target& target_;
  std::unique_ptr<FitProbe> probe_;
  std::string why_probe_;
  std::vector<StagePlan> stages_;                        // of the first estimate
  std::optional<std::vector<std::string>> not_counted_;  // of the first estimate
};

}  // namespace

MemoryPlan plan_for(const Target& target, int64_t batch) {
  MemoryPlan plan{.device = target.name,
                  .capacity_bytes = target.capacity_bytes,
                  .total_bytes = target.total_bytes};
  plan.batch = batch;
  return plan;
}

MemoryPlan unknown_plan(const Target& target, int64_t batch, std::string reason) {
  MemoryPlan plan = plan_for(target, batch);
  plan.method = "none";
  plan.reason = std::move(reason);
  return plan;
}

bool fits(const PlanRequest& request, const Target& target, int64_t micro_batch) {
  return Planner(request, target).estimate(micro_batch).fits;
}

int64_t largest_batch(const PlanRequest& request, const Target& target) {
  return Planner(request, target).largest_batch();
}

int64_t start_bytes(const PlanRequest& request, const Target& target, int64_t micro_batch) {
  return Planner(request, target).estimate(micro_batch).start_bytes;
}

std::optional<int64_t> planned_micro_batch(const PlanRequest& request, Target target,
                                           int64_t available_bytes, int64_t failed) {
  if (failed < 2) return std::nullopt;
  try {
    target.capacity_bytes =
        Planner(request, target).estimate(failed / 2).start_bytes + available_bytes;
    Planner planner(request, target);
    const Estimate now = planner.estimate(failed);
    if (!planner.is_cut(now)) return std::nullopt;
    const int64_t found = planner.largest_micro_batch(failed, now.fits);
    if (found > 0) return found;
  } catch (const plan::NotPlannable&) {
  }
  return std::nullopt;
}

MemoryPlan plan_fit(const PlanRequest& request, const Target& target, bool advice) {
  return Planner(request, target).plan(advice);
}

}  // namespace tare
