// The table of a model's modules.
#pragma once

#include <string>

namespace tare {

class Model;

/// The table of Learner::summary() for a model without a Learner.
[[nodiscard]] std::string summary(const Model& model);

}  // namespace tare
