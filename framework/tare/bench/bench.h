// bench_recipe(), bench_model(): a step of a recipe or a model against the limits of the machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tare/bench/machine_limits.h"
#include "tare/bench/step_figures.h"
#include "tare/recipe/recipe.h"

namespace tare::bench {

/// Configures a measurement.
struct BenchOptions {
  size_t phase = 0;    ///< of the recipe, from 0
  int64_t steps = 50;  ///< that are measured, >= 1; some more come before and behind them
  /// Lies on the disk that is measured; empty: no disk is.
  std::filesystem::path folder{};
};

/// Holds what was measured.
struct BenchResult {
  std::string name{};       ///< of the recipe or the model
  std::string phase{};      ///< its name; empty: of a model
  std::string model{};      ///< of the registry
  std::string precision{};  ///< of the training, see LearnerOptions::precision
  MachineLimits machine{};  ///< the rates of the machine
  StepFigures step{};       ///< what a step took
};

/// Measures steps of a phase of a recipe: with its data, batch, frozen layers, optimizer and those
/// of its callbacks that neither write files nor save. The model has its first weights. Writes
/// nothing but the file by which a disk is measured. Throws ConfigError for options out of range,
/// and what run_recipe() and measure_limits() throw.
[[nodiscard]] BenchResult bench_recipe(const RecipeOptions& recipe, const BenchOptions& options);

/// Measures steps of a registered model on random samples of its shape. `overrides`: the values of
/// a recipe, such as "batch=64" (default: 32), "model.width=32", "precision=bf16"; with a value of
/// `data` it is bench_recipe(). Throws likewise, and ConfigError for a model that needs other
/// inputs than one tensor.
[[nodiscard]] BenchResult bench_model(const std::string& model,
                                      const std::vector<std::string>& overrides,
                                      const BenchOptions& options);

/// Returns the figures as text in lines of at most `width` columns.
[[nodiscard]] std::string to_text(const BenchResult& result, size_t width);
/// Returns them as JSON: {name, phase, model, precision, machine, step, parts[], gaps[]}; docs/
/// performance.md describes the keys.
[[nodiscard]] std::string to_json(const BenchResult& result);

}  // namespace tare::bench
