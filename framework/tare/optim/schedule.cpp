// Learning rates as functions of the step.
#include "tare/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>

#include "tare/base/error.h"
#include "tare/config/scalar.h"

namespace tare {
namespace {

// A view compares its length first: both are asked for in each step.
constexpr std::string_view kConstant = "constant", kOneCycle = "one_cycle";

double cosine(double from, double to, double progress) {
  return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * progress));
}

// Interpolates from `first` to `peak` over the rising steps, then to `last`.
double two_phases(int64_t step, int64_t total, double share, double first, double peak,
                  double last) {
  if (total < 1 || step < 0 || step > total) {
    throw ConfigError("schedule",
                      "step " + std::to_string(step) + " is not in 0 to " + std::to_string(total));
  }
  const auto rising =
      std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(total) * share));
  const auto falling = std::max<int64_t>(1, total - rising);
  const auto part = [](int64_t of, int64_t all) {
    return static_cast<double>(of) / static_cast<double>(all);
  };
  if (step < rising) return cosine(first, peak, part(step, rising));
  return cosine(peak, last, part(step - rising, falling));
}

void add_ours(schedules::Registry& all) {
  const auto add = [&](const char* name, const char* summary, double (*curve)(double, double)) {
    all.add(name, summary, [curve] { return ScheduleCurve(curve); });
  };
  add("constant", "keeps the rate", [](double, double) { return 1.0; });
  add("linear", "lowers the rate to final_factor in a straight line",
      [](double p, double end) { return 1 + (end - 1) * p; });
  add("cosine", "lowers the rate to final_factor along half a cosine",
      [](double p, double end) { return cosine(1, end, p); });
  add("exponential", "lowers the rate to final_factor by the same ratio each step",
      [](double p, double end) { return std::pow(end, p); });
  // Schedule::factor() computes it from all of its shape.
  add("one_cycle", "raises and lowers the rate, and lowers and raises the momentum",
      [](double, double) { return 1.0; });
}

void require_rate(double rate) {
  if (!(rate > 0) || !std::isfinite(rate)) {
    throw ConfigError("lr",
                      "a learning rate must be finite and > 0, got " + config::number_text(rate));
  }
}

}  // namespace

schedules::Registry& schedules::registry() {
  static Registry all("schedule", add_ours);
  return all;
}

std::vector<double> LearningRate::per_group(int64_t groups) const {
  if (groups < 1) throw ConfigError("lr", "there must be at least one layer group");
  const auto count = static_cast<size_t>(groups);
  if (const auto* rate = std::get_if<double>(this)) {
    require_rate(*rate);
    return std::vector<double>(count, *rate);
  }
  const auto [from, to] = std::get<LrRange>(*this);
  require_rate(from);
  require_rate(to);
  std::vector<double> rates(count, to);
  for (size_t i = 0; i + 1 < count; ++i) {
    rates[i] = from * std::pow(to / from, static_cast<double>(i) / static_cast<double>(count - 1));
  }
  return rates;
}

void from_node(const config::Node& node, LearningRate& value) {
  if (node.kind == config::Kind::map) {
    LrRange range = config::read<LrRange>(node);
    for (const char* end : {"from", "to"})
      if (!node.find(end))
        throw ConfigError(node.source, end, "is missing", "both ends, {from: 1e-5, to: 1e-3}", {});
    value = range;
  } else {
    value = config::read<double>(node);
  }
}

config::Node to_node(const LearningRate& value) {
  if (const auto* rate = std::get_if<double>(&value)) return config::to_node(*rate);
  return config::to_node(std::get<LrRange>(value));
}

double one_cycle_factor(int64_t step, int64_t total, const OneCycle& shape) {
  const double final_div = shape.final_div > 0 ? shape.final_div : shape.div * 1e4;
  return two_phases(step, total, shape.pct_start, 1 / shape.div, 1, 1 / final_div);
}

double one_cycle_lr(int64_t step, int64_t total, double max_lr, const OneCycle& shape) {
  return max_lr * one_cycle_factor(step, total, shape);
}

double one_cycle_momentum(int64_t step, int64_t total, const OneCycle& shape) {
  return two_phases(step, total, shape.pct_start, shape.momentum_start, shape.momentum_lowest,
                    shape.momentum_start);
}

double Schedule::factor(int64_t step, int64_t total) const {
  if (kind == kOneCycle) return one_cycle_factor(step, total, one_cycle);
  const auto rising = static_cast<int64_t>(static_cast<double>(total) * warmup);
  if (step < rising) return static_cast<double>(step + 1) / static_cast<double>(rising + 1);
  const auto falling = static_cast<double>(std::max<int64_t>(1, total - rising));
  if (kind == kConstant) return 1;  // the usual case needs no look-up in each step
  const auto curve = schedules::registry().make(kind);
  return curve(static_cast<double>(step - rising) / falling, final_factor);
}

std::optional<double> Schedule::momentum(int64_t step, int64_t total) const {
  if (kind != kOneCycle) return std::nullopt;
  return one_cycle_momentum(step, total, one_cycle);
}

void Schedule::check() const {
  config::validate(*this, "schedule");
  if (kind == "one_cycle" && warmup > 0) {
    throw ConfigError("schedule",
                      "one_cycle has its own rise; set warmup to 0, or one_cycle.pct_start");
  }
  if (kind != "one_cycle" && !(one_cycle == OneCycle{}))
    throw ConfigError("schedule", "one_cycle", "shapes the kind one_cycle only", "kind: one_cycle",
                      kind);
  if ((kind == "one_cycle" || kind == "constant") && final_factor != 0)
    throw ConfigError("schedule", "final_factor",
                      "is where linear, cosine and exponential end, and the kind is " + kind,
                      kind == "one_cycle" ? "one_cycle.final_div" : "another kind",
                      config::number_text(final_factor));
  if (kind == "exponential" && final_factor <= 0) {
    throw ConfigError("schedule", "exponential needs final_factor > 0; a usual value is 0.01");
  }
}

}  // namespace tare
