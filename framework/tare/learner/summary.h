// The table of a model's modules.
#pragma once

#include <string>

#include "tare/base/terminal.h"
#include "tare/data/batch.h"

namespace tare {

class Model;

/// Returns the table of Learner::summary() for a model without a Learner, within `width` columns.
/// `sample`: a batch of one on the meta device; with it the table of a model from the registry has
/// the shape of what each layer makes of the sample.
[[nodiscard]] std::string summary(const Model& model, size_t width = kAnyWidth,
                                  const Batch& sample = {});

/// Returns "resnet9: 26,278 parameters, 103.8 KiB with buffers; layer groups: prep, layer1, ...,
/// fc"
[[nodiscard]] std::string summary_line(const Model& model);

}  // namespace tare
