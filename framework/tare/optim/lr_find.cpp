// Smooths the losses of a search for a learning rate, and reads rates from the curve.
#include "tare/optim/lr_find.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "tare/base/error.h"
#include "tare/base/text_plot.h"
#include "tare/config/scalar.h"

namespace tare {
namespace {

using Points = std::span<const LrFindPoint>;

// The values of fastai.
constexpr double kDecay = 0.98, kDiverged = 4;
constexpr size_t kFirst = 10;  // losses whose mean is still that of a few batches
constexpr size_t kSkippedPart = 10, kSkippedEnd = 5, kFewest = 3;

/// Skips the points that fastai skips, unless too few would remain.
Points trimmed(const LrFindResult& result) {
  const Points all = result.points;
  const size_t first = static_cast<size_t>(result.steps) / kSkippedPart;
  if (all.size() < first + kSkippedEnd + kFewest) return all;
  return all.subspan(first, all.size() - first - kSkippedEnd);
}

double valley_of(Points points) {
  std::vector<size_t> longest(points.size(), 1);  // series of falling losses that end here
  size_t end = 0;
  for (size_t i = 1; i < points.size(); ++i) {
    for (size_t j = 0; j < i; ++j)
      if (points[i].smoothed < points[j].smoothed)
        longest[i] = std::max(longest[i], longest[j] + 1);
    if (longest[i] > longest[end]) end = i;
  }
  // fastai counts the start of the valley back from its end by the length of the series.
  const double third = static_cast<double>(longest[end]) / 3;
  const auto inside = static_cast<size_t>(third) + static_cast<size_t>(third / 2);
  const size_t at = end + inside < longest[end] ? 0 : end + inside - longest[end];
  return points[at].lr;
}

double steepest_of(Points points) {
  size_t best = 0;
  double lowest = 0;
  for (size_t i = 0; i + 1 < points.size(); ++i) {
    const double slope = (points[i + 1].smoothed - points[i].smoothed) /
                         (std::log(points[i + 1].lr) - std::log(points[i].lr));
    if (slope >= lowest) continue;
    lowest = slope;
    best = i;
  }
  return points[best].lr;
}

}  // namespace

void LrFindOptions::check(const std::string& where) const {
  config::validate(*this, where);
  if (!std::isfinite(end) || !(end > start))
    throw ConfigError(where, "end", "must be finite and above start, " + config::number_text(start),
                      "", config::number_text(end));
}

void suggest(LrFindResult& result) {
  const Points points = trimmed(result);
  const bool falls =
      std::ranges::adjacent_find(points, [](const LrFindPoint& a, const LrFindPoint& b) {
        return b.smoothed < a.smoothed;
      }) != points.end();
  if (!falls) return;
  result.valley = valley_of(points);
  result.steepest = steepest_of(points);
  result.minimum = std::ranges::min_element(points, {}, &LrFindPoint::smoothed)->lr / 10;
}

double LrFindResult::lr() const {
  const auto& found = suggestion == "valley"     ? valley
                      : suggestion == "steepest" ? steepest
                                                 : minimum;
  if (found) return *found;
  throw StateError(
      "learner.lr_find",
      "without a suggestion: the loss fell at none of " + std::to_string(points.size()) + " steps",
      "give a rate, or search with more steps or from another start");
}

std::string LrFindResult::str(size_t width) const {
  TextPlot plot{.title = "smoothed loss by learning rate",
                .x_title = "learning rate",
                .log_x = true,
                .curves = {{}}};
  for (const LrFindPoint& point : trimmed(*this)) {
    plot.curves.front().x.push_back(point.lr);
    plot.curves.front().y.push_back(point.smoothed);
  }
  std::string text = text_plot(plot, width) + std::to_string(points.size()) + " steps" +
                     (interrupted     ? ", interrupted"
                      : stopped_early ? ", ended because the loss rose"
                                      : "");
  if (!valley) return text + "; the loss fell at none of them\n";
  return text + "; suggested: valley " + short_number(*valley) + ", steepest " +
         short_number(*steepest) + ", minimum " + short_number(*minimum) + '\n';
}

void LrFindCurve::add(double lr, double loss) {
  if (!std::isfinite(loss)) {
    stopped_early_ = true;
    return;
  }
  mean_ = kDecay * mean_ + (1 - kDecay) * loss;
  const double smoothed = mean_ / (1 - std::pow(kDecay, static_cast<double>(points_.size() + 1)));
  points_.push_back({.lr = lr, .loss = loss, .smoothed = smoothed});
  if (points_.size() <= kFirst || smoothed < lowest_) lowest_ = smoothed;
  if (options_.stop_early && smoothed > kDiverged * lowest_) stopped_early_ = true;
}

bool LrFindCurve::finished() const {
  return stopped_early_ || std::cmp_greater_equal(points_.size(), options_.steps);
}

}  // namespace tare
