// Sweeps made by hand: plausible ones of any size, and what a page must withstand.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tare/report/sweep_summary.h"

namespace tare::testing {

/// `runs` runs of `epochs` epochs that maximize accuracy over eight parameters; one in ten is
/// pruned, some have failed. Reproducible: a seeded generator and no library distribution.
inline report::SweepSummary example_sweep(size_t runs, size_t epochs) {
  report::SweepSummary sweep{
      .name = "digits-sweep",
      .metric = "accuracy",
      .maximize = true,
      .parameters = {{.name = "phases.0.lr", .low = 1e-4, .high = 1e-1, .logarithmic = true},
                     {.name = "optimizer.name", .choices = {"sgd", "adam", "adamw"}},
                     {.name = "optimizer.momentum", .high = 0.99},
                     {.name = "optimizer.weight_decay", .choices = {"0", "1e-4", "1e-3", "1e-2"}},
                     {.name = "model.width", .choices = {"8", "16", "32"}},
                     {.name = "model.depth", .low = 2, .high = 12, .step = 1, .integer = true},
                     {.name = "batch",
                      .low = 16,
                      .high = 512,
                      .step = 1,
                      .logarithmic = true,
                      .integer = true},
                     {.name = "model.dropout", .high = 0.6, .step = 0.05}}};
  std::mt19937_64 generator(7);
  const auto uniform = [&] { return static_cast<double>(generator() >> 11) * 0x1p-53; };
  const auto below = [&](int count) { return std::floor(uniform() * count); };
  for (size_t i = 0; i < runs; ++i) {
    auto& run = sweep.runs.emplace_back();
    run.number = static_cast<int64_t>(i);
    run.name = "digits-sweep" + std::to_string(i) + "_p0l0-01_onadam_owd1e-4_mw16";
    const double lr = -4 + 3 * uniform(), optimizer = below(3), width = below(3);
    run.values = {std::pow(10, lr),
                  optimizer,
                  optimizer == 0 ? 0.99 * uniform() : NAN,
                  below(4),
                  width,
                  2 + below(11),
                  std::round(16 * std::pow(32, uniform())),
                  0.05 * below(13)};
    const double top = 0.97 - 0.09 * std::pow(lr + 2.4, 2) - 0.04 * (2 - width) -
                       (optimizer == 0 ? 0.05 : 0) - 0.12 * run.values[7] + 0.03 * uniform();
    const size_t length = i % 10 == 3 ? epochs / 3 + 1 : epochs;
    const double speed = 1.5 + 6 * uniform();
    for (size_t epoch = 0; epoch < length; ++epoch) {
      const double progress =
          1 - std::exp(-speed * static_cast<double>(epoch + 1) / static_cast<double>(epochs));
      run.metric.push_back(0.1 + (top - 0.1) * progress + 0.02 * (uniform() - 0.5));
    }
    run.value = run.metric.empty() ? NAN : run.metric.back();
    run.state = i % 10 == 3 ? "PRUNED" : "COMPLETE";
    run.peak_bytes = static_cast<int64_t>(40e6 * (1 + width) * (1 + uniform()));
    run.seconds = 20 + 60 * uniform();
    if (i % 17 == 5) {
      run.state = "FAIL";
      run.reason = i % 2 == 0 ? "out of memory" : "signal 9";
      run.value = NAN;
      run.metric.resize(run.metric.size() / 4);
    }
  }
  return sweep;
}

/// Returns a sweep with the worst names, numbers and states: markup, other scripts, 500 letters,
/// numbers that are not finite, 40 parameters.
inline report::SweepSummary hostile_sweep() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::string markup = "</title><script>alert('1')</script>&\"", many(500, 'w');
  const std::string other = "\u6570\u5b57-\u0446\u0438\u0444\u0440\u044b-\U0001F600";
  report::SweepSummary sweep{.name = markup + other, .metric = markup + many};
  for (size_t i = 0; i < 40; ++i) {
    auto& parameter = sweep.parameters.emplace_back();
    parameter.name = (i % 3 == 0 ? markup : i % 3 == 1 ? other : many) + std::to_string(i);
    if (i % 4 == 0) parameter.choices = {markup, other, many, "", "\xff\x01"};
    if (i % 4 == 1) parameter.low = parameter.high = 1e300;
    if (i % 4 == 2) parameter.low = -kInfinity, parameter.high = kInfinity;
    if (i % 4 == 3) parameter.low = -1, parameter.logarithmic = true;
    if (i > 30) parameter.low = parameter.high = i == 31 ? 1e100 : -1e99;
    parameter.integer = i > 20;
  }
  const std::vector<double> values{NAN,  kInfinity, -kInfinity, 1e308, -1e308, 5e-324,
                                   1e99, -1e99,     0,          -1,    3,      99};
  for (size_t i = 0; i < 60; ++i) {
    auto& run = sweep.runs.emplace_back();
    run.name = (i % 3 == 0 ? markup : i % 3 == 1 ? other : many) + std::to_string(i);
    run.number = i % 2 == 0 ? static_cast<int64_t>(i) : -5;
    run.state = std::vector<std::string>{"COMPLETE", "PRUNED", "FAIL", "RUNNING", markup}[i % 5];
    run.reason = i % 5 == 2 ? markup + many : "";
    for (size_t j = 0; j < i; ++j) run.values.push_back(values[(i + j) % values.size()]);
    for (size_t j = 0; j < i % 9; ++j) run.metric.push_back(values[(i * j) % values.size()]);
    run.value = values[i / 5 % values.size()];
    run.peak_bytes = i == 1 ? std::numeric_limits<int64_t>::max() : -static_cast<int64_t>(i);
    run.seconds = values[i % values.size()];
  }
  return sweep;
}

}  // namespace tare::testing
