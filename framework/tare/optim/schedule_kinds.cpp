// The curves of the schedules by name.
#include "tare/optim/schedule_kinds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "tare/base/error.h"
#include "tare/config/scalar.h"
#include "tare/optim/cosine.h"

namespace tare {
namespace {

// A step may lie a rounding error before the share of the steps at which it should act.
constexpr double kRounding = 1e-9;

double along_line(double progress, double end) { return 1 + (end - 1) * progress; }

[[noreturn]] void refuse(const char* option, const std::string& problem, const std::string& got) {
  throw ConfigError("schedule", option, problem, {}, got);
}

ScheduleCurve cosine(const CosineSchedule& o) {
  return [cycles = static_cast<double>(o.cycles)](double progress, double end) {
    const double at = progress * cycles;
    const double cycle = std::min(std::floor(at + kRounding), cycles - 1);
    return along_cosine(1, end, std::max(0.0, at - cycle));
  };
}

ScheduleCurve polynomial(const PolynomialSchedule& o) {
  return [power = o.power](double progress, double end) {
    return end + (1 - end) * std::pow(1 - progress, power);
  };
}

ScheduleCurve step(const StepSchedule& o) {
  if (o.every > 0) {
    if (o.milestones != StepSchedule{}.milestones)
      refuse("every", "stands beside milestones; give one of them", config::number_text(o.every));
    return [o](double progress, double) {
      return std::pow(o.gamma, std::floor(progress / o.every + kRounding));
    };
  }
  const auto& at = o.milestones;
  for (size_t i = 0; i < at.size(); ++i)
    if (at[i] <= 0 || at[i] >= 1 || (i > 0 && at[i] <= at[i - 1]))
      refuse("milestones", "must be ascending, above 0 and below 1", config::number_text(at[i]));
  return [o](double progress, double) {
    const auto passed = std::ranges::count_if(
        o.milestones, [&](double milestone) { return progress >= milestone - kRounding; });
    return std::pow(o.gamma, static_cast<double>(passed));
  };
}

ScheduleCurve piecewise(const PiecewiseSchedule& o) {
  const auto& points = o.points;
  if (points.empty()) refuse("points", "must have at least one point", "none");
  for (size_t i = 0; i < points.size(); ++i) {
    if (points[i].size() != 2)
      refuse("points", "must be pairs of progress and factor",
             std::to_string(points[i].size()) + " numbers");
    if (points[i][0] > 1 || (i > 0 && points[i][0] <= points[i - 1][0]))
      refuse("points", "must have ascending progress from 0 to 1",
             config::number_text(points[i][0]));
  }
  return [points](double progress, double) {
    const auto next = std::ranges::find_if(
        points, [&](const std::vector<double>& point) { return progress < point[0]; });
    if (next == points.begin()) return points.front()[1];
    if (next == points.end()) return points.back()[1];
    const auto &from = *(next - 1), &to = *next;
    return from[1] + (to[1] - from[1]) * (progress - from[0]) / (to[0] - from[0]);
  };
}

ScheduleCurve wsd(const WsdSchedule& o) {
  if (o.decay <= 0) refuse("decay", "must be above 0", config::number_text(o.decay));
  return [o](double progress, double end) {
    const double part = std::max(0.0, (progress - (1 - o.decay)) / o.decay);
    if (o.shape == "cosine") return along_cosine(1, end, part);
    return along_line(o.shape == "sqrt" ? std::sqrt(part) : part, end);
  };
}

/// A part of a sequence that begins at a share of the whole.
struct Part {
  double start = 0, length = 0, factor = 1, final_factor = 0;
  ScheduleCurve curve{};
};

ScheduleCurve sequence(const SequenceSchedule& o) {
  if (o.parts.empty()) refuse("parts", "must have at least one part", "none");
  double all = 0, start = 0;
  for (const SchedulePart& part : o.parts) all += part.share;
  std::vector<Part> parts;
  for (size_t i = 0; i < o.parts.size(); ++i) {
    const SchedulePart& given = o.parts[i];
    try {
      if (given.kind == "one_cycle" || given.kind == "sequence")
        refuse("kind", "cannot be a part of a sequence", given.kind);
      Schedule{.kind = given.kind, .final_factor = given.final_factor, .options = given.options}
          .check();
      parts.push_back({start, given.share / all, given.factor, given.final_factor,
                       schedules::registry().make(given.kind, given.options)});
    } catch (const ConfigError& error) {
      throw error.within("parts." + std::to_string(i), error.source());
    }
    start += given.share / all;
  }
  return [parts](double progress, double) {
    size_t at = parts.size() - 1;
    while (at > 0 && progress < parts[at].start - kRounding) --at;
    const Part& part = parts[at];
    const double own = std::clamp((progress - part.start) / part.length, 0.0, 1.0);
    return part.factor * part.curve(own, part.final_factor);
  };
}

void add_ours(schedules::Registry& all) {
  const auto add = [&](const char* name, const char* summary, double (*curve)(double, double)) {
    all.add(name, summary, [curve] { return ScheduleCurve(curve); });
  };
  add("constant", "keeps the rate", [](double, double) { return 1.0; });
  add("linear", "lowers the rate to final_factor in a straight line", along_line);
  all.add<CosineSchedule>("cosine", "lowers the rate to final_factor along half a cosine", cosine);
  add("exponential", "lowers the rate to final_factor > 0 by the same ratio each step",
      [](double progress, double end) { return std::pow(end, progress); });
  all.add<PolynomialSchedule>("polynomial",
                              "lowers the rate to final_factor by a power of the rest", polynomial);
  all.add<StepSchedule>("step", "multiplies the rate by gamma at milestones", step);
  all.add<PiecewiseSchedule>("piecewise", "follows straight lines between points", piecewise);
  all.add<WsdSchedule>("wsd", "keeps the rate, and lowers it to final_factor at the end", wsd);
  all.add<SequenceSchedule>("sequence", "follows other schedules one after the other", sequence);
  // MadeSchedule computes it from all of its shape.
  add("one_cycle", "raises and lowers the rate, and lowers and raises the momentum",
      [](double, double) { return 1.0; });
}

}  // namespace

schedules::Registry& schedules::registry() {
  static Registry all("schedule", add_ours);
  return all;
}

bool has_final_factor(const std::string& kind) {
  constexpr std::array<std::string_view, 5> kWithout{"constant", "one_cycle", "step", "piecewise",
                                                     "sequence"};
  return std::ranges::find(kWithout, kind) == kWithout.end();
}

}  // namespace tare
