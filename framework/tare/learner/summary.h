// The table of a model's modules.
#pragma once

#include <string>

#include "tare/base/terminal.h"

namespace tare {

class Model;

/// The table of Learner::summary() for a model without a Learner, within `width` columns.
[[nodiscard]] std::string summary(const Model& model, size_t width = kAnyWidth);

/// "resnet9: 26,278 parameters, 103.8 KiB with buffers; layer groups: prep, layer1, ..., fc"
[[nodiscard]] std::string summary_line(const Model& model);

}  // namespace tare
