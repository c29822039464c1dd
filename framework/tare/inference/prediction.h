// Prediction: a class with its probability.
#pragma once

#include <cstdint>
#include <string>

namespace tare {

/// Holds one class and its probability.
struct Prediction {
  std::string label{};     ///< of the class; its index as text if the bundle has no labels
  int64_t index = 0;       ///< of the class
  double probability = 0;  ///< the output after the bundle's activation
};

}  // namespace tare
