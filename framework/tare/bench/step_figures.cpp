// Measures steps of a fit, and compares them with the limits of the machine.
#include "tare/bench/step_figures.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <utility>

namespace tare::bench {
namespace {

using Clock = std::chrono::steady_clock;

double between(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

/// Notes when each step begins and ends. A step begins when its batch is there.
class StepClock final : public Callback {
 public:
  StepClock(c10::Device device, OperatorTimes* times) : device_(device), times_(times) {}
  [[nodiscard]] std::string name() const override { return "step_clock"; }

  Action before_batch(FitContext&) override {
    begins.push_back(now(begins.empty()));
    if (times_) times_->resume();
    return Action::proceed;
  }
  Action after_batch(FitContext&) override {
    if (times_) times_->pause();
    ends.push_back(now(false));
    return Action::proceed;
  }
  Action after_fit(FitContext&) override {
    last = now(true);
    return Action::proceed;
  }

  std::vector<Clock::time_point> begins{}, ends{};
  Clock::time_point last{};

 private:
  [[nodiscard]] Clock::time_point now(bool waits) const {
    if (waits && !device_.is_cpu())
      c10::impl::VirtualGuardImpl(device_.type()).synchronizeDevice(device_.index());
    return Clock::now();
  }

  c10::Device device_;
  OperatorTimes* times_;
};

FitOptions with(FitOptions options, const CallbackPtr& callback) {
  options.callbacks.push_back(callback);
  return options;
}

std::optional<double> limit_of(const OperatorFigures& one, const MachineLimits& machine) {
  const auto calls = static_cast<double>(one.calls);
  const double moving = machine.seconds_of_bytes(one.bytes) * calls;
  const auto computing = machine.seconds_of(one.flops);
  return computing ? std::optional(std::max(*computing, moving)) : std::nullopt;
}

}  // namespace

StepFigures measure_steps(Learner& learner, FitOptions options, int64_t steps) {
  const int64_t first = std::max<int64_t>(3, steps / 5);  // which allocate, and choose kernels
  const c10::Device device = learner.device();
  StepFigures figures{.steps = steps};
  (void)learner.fit({.steps = first}, options);
  const auto clock = std::make_shared<StepClock>(device, nullptr);
  (void)learner.fit({.steps = steps + 1}, with(options, clock));
  std::vector<double> whole, feeds;
  for (size_t i = 1; i < clock->begins.size(); ++i) {
    whole.push_back(between(clock->begins[i - 1], clock->begins[i]));
    feeds.push_back(between(clock->ends[i - 1], clock->begins[i]));
  }
  figures.step_s = quantile(whole, 0.5);
  figures.low_s = quantile(whole, 0.25);
  figures.high_s = quantile(whole, 0.75);
  figures.feed_s = quantile(feeds, 0.5);
  if (!device.is_cpu())
    figures.step_s = figures.low_s = figures.high_s =
        between(clock->begins.front(), clock->last) / static_cast<double>(clock->begins.size());
  figures.watched_steps = std::max<int64_t>(3, steps / 5);
  OperatorTimes times(/*waits_for_device=*/!device.is_cpu());
  (void)learner.fit({.steps = figures.watched_steps},
                    with(std::move(options), std::make_shared<StepClock>(device, &times)));
  figures.operators = times.figures();
  return figures;
}

StepLimits limits_of(const StepFigures& step, const MachineLimits& machine, size_t gaps) {
  StepLimits limits;
  std::map<OperatorClass, StepPart> parts;
  const auto steps = static_cast<double>(step.watched_steps);
  double in_operators = 0;
  for (const OperatorFigures& one : step.operators) in_operators += one.seconds / steps;
  // Operators that are watched, or disturbed, may take longer than the whole step did before.
  const double most = step.step_s - step.feed_s;
  const double scale = in_operators > most ? most / in_operators : 1;
  in_operators *= scale;
  for (const OperatorFigures& one : step.operators) {
    const double seconds = scale * one.seconds / steps;
    auto limit = limit_of(one, machine);
    if (limit) *limit /= steps;
    StepPart& part = parts.try_emplace(one.kind, StepPart{to_string(one.kind), 0, 0}).first->second;
    part.seconds += seconds;
    if (part.limit_s) part.limit_s = limit ? std::optional(*part.limit_s + *limit) : std::nullopt;
    limits.limit_s += limit.value_or(0);
    limits.gaps.push_back({one, seconds, limit});
  }
  for (auto& [kind, part] : parts) limits.parts.push_back(std::move(part));
  limits.parts.push_back({.name = "until the next batch", .seconds = step.feed_s});
  limits.parts.push_back({.name = "between operators",
                          .seconds = std::max(0.0, step.step_s - step.feed_s - in_operators)});
  std::ranges::sort(limits.parts, std::ranges::greater(), &StepPart::seconds);
  const auto gap = [](const Gap& one) { return one.seconds - one.limit_s.value_or(0); };
  std::ranges::sort(limits.gaps, std::ranges::greater(), gap);
  if (limits.gaps.size() > gaps) limits.gaps.resize(gaps);
  return limits;
}

}  // namespace tare::bench
