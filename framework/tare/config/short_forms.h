// The short forms in which a recipe or a sweep may be written, before it is read.
#pragma once

#include <string_view>

#include "tare/config/node.h"

namespace tare::config {

/// Replaces a plain name where a mapping stands by the mapping that it is short for:
/// `optimizer: adam` by `optimizer: {kind: adam}`; also for model, data and the phases' data and
/// schedule.
void expand_short_forms(Node& recipe);

/// Calls apply_override() for a recipe in which a short form may stand on the key's path:
/// `model.width=4` on `model: resnet9`. All other short forms stay.
void apply_recipe_override(Node& recipe, std::string_view assignment);

/// Calls apply_override() for a sweep in which a short form may stand on the key's path:
/// `executor.setup=[...]` on `executor: slurm`. Settings of runs below `parameters` and `set` have
/// one key each, which may contain dots.
void apply_sweep_override(Node& sweep, std::string_view assignment);

}  // namespace tare::config
