// Finds bundles of models that have one output for two classes.
#include "tare/inference/one_score.h"

namespace tare {

bool has_one_score(const BundleManifest& manifest) {
  return manifest.labels.size() == 2 && manifest.activation == "sigmoid" &&
         class_count(manifest) == 1;
}

}  // namespace tare
