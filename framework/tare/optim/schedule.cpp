// Learning rates as functions of the step.
#include "tare/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "tare/base/error.h"
#include "tare/config/scalar.h"
#include "tare/optim/cosine.h"

namespace tare {
namespace {

// A view compares its length first: both are asked for in each step.
constexpr std::string_view kConstant = "constant", kOneCycle = "one_cycle";

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
  if (step < rising) return along_cosine(first, peak, part(step, rising));
  return along_cosine(peak, last, part(step - rising, falling));
}

/// The mapping of a LearningRate in YAML.
struct LrForm {
  std::optional<double> from{}, to{};
  std::optional<LrFindOptions> find{};
};
void visit_fields(auto& visit, LrForm& form) {
  visit("from", form.from, config::above(0));
  visit("to", form.to, config::above(0));
  visit("find", form.find);
}

void require_rate(double rate) {
  if (!(rate > 0) || !std::isfinite(rate)) {
    throw ConfigError("lr",
                      "a learning rate must be finite and > 0, got " + config::number_text(rate));
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
  if (search()) throw ConfigError("lr", "is still to be found by a search");
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
  if (node.kind == config::Kind::scalar && node.text == "find") {
    value = LrFindOptions{};
    return;
  }
  if (node.kind == config::Kind::scalar && node.text == "auto")
    throw ConfigError(node.source, "", "must be a number, or find, which searches for one", "",
                      "auto");
  if (node.kind == config::Kind::sequence)
    throw ConfigError(node.source, "",
                      "must be a number, or the rates of the first and the last "
                      "layer group",
                      "{from: 1e-4, to: 1e-3}", config::describe(node));
  if (node.kind != config::Kind::map) {
    try {
      value = config::read<double>(node);
    } catch (const ConfigError&) {
      throw ConfigError(node.source, "", "must be a number",
                        "such as 1e-3; find; or {from: 1e-5, to: 1e-3}, the rates of the first "
                        "and the last layer group",
                        config::describe(node));
    }
    return;
  }
  const auto form = config::read<LrForm>(node);
  if (form.find) {
    if (form.from || form.to)
      throw ConfigError(node.source, "find", "stands beside from and to", "one of both", {});
    value = *form.find;
    return;
  }
  for (const auto& [end, given] : {std::pair("from", form.from), std::pair("to", form.to)})
    if (!given)
      throw ConfigError(node.source, end, "is missing", "both ends, {from: 1e-5, to: 1e-3}", {});
  value = LrRange{*form.from, *form.to};
}

config::Node to_node(const LearningRate& value) {
  if (const auto* rate = std::get_if<double>(&value)) return config::to_node(*rate);
  if (const LrFindOptions* search = value.search()) {
    if (*search == LrFindOptions{}) return config::Node::string("find");
    config::Node node = config::Node::map();
    node.set("find", config::to_node(*search));
    return node;
  }
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

MadeSchedule::MadeSchedule(const Schedule& schedule)
    : warmup_(schedule.warmup), final_factor_(schedule.final_factor) {
  if (schedule.kind == kOneCycle)
    one_cycle_ = schedule.one_cycle;
  else if (schedule.kind != kConstant)
    curve_ = schedules::registry().make(schedule.kind, schedule.options);
}

double MadeSchedule::factor(int64_t step, int64_t total) const {
  if (one_cycle_) return one_cycle_factor(step, total, *one_cycle_);
  const auto rising = static_cast<int64_t>(static_cast<double>(total) * warmup_);
  if (step < rising) return static_cast<double>(step + 1) / static_cast<double>(rising + 1);
  if (!curve_) return 1;
  const auto falling = static_cast<double>(std::max<int64_t>(1, total - rising));
  return curve_(static_cast<double>(step - rising) / falling, final_factor_);
}

std::optional<double> MadeSchedule::momentum(int64_t step, int64_t total) const {
  if (!one_cycle_) return std::nullopt;
  return one_cycle_momentum(step, total, *one_cycle_);
}

double Schedule::factor(int64_t step, int64_t total) const {
  return MadeSchedule(*this).factor(step, total);
}

std::optional<double> Schedule::momentum(int64_t step, int64_t total) const {
  return MadeSchedule(*this).momentum(step, total);
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
  if (final_factor != 0 && !has_final_factor(kind))
    throw ConfigError("schedule", "final_factor",
                      "is where linear, cosine, exponential, polynomial and wsd end, and the kind "
                      "is " +
                          kind,
                      kind == "one_cycle" ? "one_cycle.final_div" : "another kind",
                      config::number_text(final_factor));
  if (kind == "exponential" && final_factor <= 0) {
    throw ConfigError("schedule", "exponential needs final_factor > 0; a usual value is 0.01");
  }
  (void)schedules::registry().make(kind, options);
}

}  // namespace tare
