// run_recipe(): trains a Learner through the phases of a recipe, each measured by an Experiment.
#pragma once

#include "tare/recipe/read_recipe.h"
#include "tare/recipe/run_options.h"
#include "tare/recipe/run_report.h"

namespace tare {

/// Runs all phases, then test, export and destroy. Needs tare::init().
///
/// The run's folder is folder/name or, where that holds a run, the first of folder/name-2,
/// folder/name-3 ... that does not; to resume, the last of them whose run is unfinished. During the
/// run its folder is locked against other processes and holds two alternating automatic
/// checkpoints; afterwards recipe.yaml, report.json, two CSV files per phase (epochs, steps) and
/// what the phases saved. An interrupt (see train/interrupt.h) ends the run after the step in
/// flight, with a checkpoint and a report. A resumed run ends with the weights, metrics and CSV
/// rows (except times) of an undisturbed one, bit for bit on the CPU. Throws what the Learner
/// throws; StateError if another process runs in the folder; ConfigError if there is nothing to
/// resume or it belongs to another recipe or other data.
RunReport run_recipe(const RecipeOptions& recipe, const RunOptions& options = {});

}  // namespace tare
