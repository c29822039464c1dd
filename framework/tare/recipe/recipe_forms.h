// The forms in which a recipe may be written, before it is read. Internal.
#pragma once

#include <filesystem>

#include "tare/config/node.h"

namespace tare {

/// Replaces a plain name where a mapping stands by the mapping that it is short for:
/// `optimizer: adam` by `optimizer: {kind: adam}`; also for model, data and the phases' data and
/// schedule.
void expand_short_forms(config::Node& root);

/// Throws ConfigError for a sweep and for another configuration of a sweep, with the command to
/// type.
void refuse_other_files(const config::Node& root, const std::filesystem::path& file);

}  // namespace tare
