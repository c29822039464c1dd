// Finds bundles of models whose outputs are probabilities by themselves.
#include "tare/inference/one_score.h"

namespace tare {

bool has_one_score(const BundleManifest& manifest) {
  return manifest.labels.size() == 2 && manifest.activation == "sigmoid" &&
         class_count(manifest) == 1;
}

bool has_several_labels(const BundleManifest& manifest) {
  return manifest.activation == "sigmoid" && !has_one_score(manifest);
}

}  // namespace tare
