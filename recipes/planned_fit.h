// Fits a Learner and compares the memory that the plan predicted with what the fit took; for
// recipes.
#pragma once

#include <tare/runtime/exit_code.h>
#include <tare/tare.h>

#include <exception>
#include <iostream>
#include <optional>
#include <string>

/// Options that all of these recipes share: the epochs table on standard output, and batches made
/// between the steps, so that the peak does not depend on the speed of a thread.
inline tare::LearnerOptions options_for(const std::string& name) {
  return {.metrics = {"accuracy"},
          .device = "cpu",
          .optimizer = {.weight_decay = 0.01},
          .workers = 0,
          .folder = "runs/" + name};
}

/// Plans a one-cycle fit, does it, and prints the planned and the measured peak above the start.
/// The program's first argument, such as 24MiB, is a budget for what the fit may take above it.
inline void planned_fit(tare::Learner& learner, int64_t epochs, double max_lr, int argc,
                        char** argv) {
  const tare::MemoryPlan plan = learner.plan({.advice = false});
  auto& host = tare::memory::backend(c10::kCPU);
  if (argc > 1) {
    const std::optional<int64_t> budget = tare::parse_bytes(argv[1]);
    if (!budget)
      throw tare::ConfigError("recipe", "budget", "is not a number of bytes", "such as 24MiB",
                              argv[1]);
    host.set_budget(host.usage().allocated_bytes + *budget);
  }
  const tare::memory::PeakScope peak(c10::kCPU);
  learner.fit_one_cycle(epochs, {.max_lr = max_lr});
  std::cout << "planned peak " << plan.peak_bytes << " B, measured "
            << peak.peak_above_start_bytes() << " B\n";
}
