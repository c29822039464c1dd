#include <iostream>

#include "tare/base/io.h"
#include "tare/base/log.h"
#include "tare/cli/command.h"
#include "tare/learner/interrupt.h"
#include "tare/memory/init.h"
#include "tare/recipe/run.h"

namespace tare::cli {

int run_command(const Arguments& arguments) {
  const auto& words = arguments.positional();
  const RecipeOptions recipe = read_recipe(words.front(), {words.begin() + 1, words.end()});
  init();
  const InterruptScope interrupts;
  const RunReport report =
      run_recipe(recipe, {.out = &std::cout, .dry_run = arguments.has("dry-run")});
  if (arguments.has("json")) io::write_atomically(arguments.get("json"), to_json(report) + '\n');
  if (report.reason != StopReason::interrupted) return kSuccess;
  log::warning("stopped by a signal after the step in flight");
  return 128 + interrupts.signal();
}

}  // namespace tare::cli
