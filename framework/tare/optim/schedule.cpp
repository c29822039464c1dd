#include "tare/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tare/base/error.h"

namespace tare {
namespace {

double cosine(double from, double to, double progress) {
  return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * progress));
}

// Runs from -> peak over the rising steps and peak -> last over the others.
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

double decay(const std::string& kind, double end, double p) {
  if (kind == "linear") return 1 + (end - 1) * p;
  if (kind == "cosine") return cosine(1, end, p);
  if (kind == "exponential") return std::pow(end, p);
  return 1;
}

void require_rate(double rate) {
  if (!(rate > 0) || !std::isfinite(rate)) {
    throw ConfigError("lr", "a learning rate must be finite and > 0, got " + std::to_string(rate));
  }
}

}  // namespace

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
    value = config::read<LrRange>(node);
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
  if (kind == "one_cycle") return one_cycle_factor(step, total, one_cycle);
  const auto rising = static_cast<int64_t>(static_cast<double>(total) * warmup);
  if (step < rising) return static_cast<double>(step + 1) / static_cast<double>(rising + 1);
  const auto falling = static_cast<double>(std::max<int64_t>(1, total - rising));
  return decay(kind, final_factor, static_cast<double>(step - rising) / falling);
}

std::optional<double> Schedule::momentum(int64_t step, int64_t total) const {
  if (kind != "one_cycle") return std::nullopt;
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
    throw ConfigError("schedule", "final_factor", "is where linear, cosine and exponential end",
                      kind == "one_cycle" ? "one_cycle.final_div" : "another kind", kind);
  if (kind == "exponential" && final_factor <= 0) {
    throw ConfigError("schedule", "exponential needs final_factor > 0; a usual value is 0.01");
  }
}

}  // namespace tare
