// A small bundle for the tests of this library.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/rand.h>

#include <string>

#include "support/damage.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/inference/bundle.h"
#include "tare/model/registry.h"

namespace tare {

using testing::overwrite;
using testing::refused_part;

/// An mlp on [1, 4, 4] images with 3 classes.
inline Model small_model() {
  return models::make("mlp",
                      {.classes = 3, .sample_shape = {1, 4, 4}, .weights = "", .hidden = {8}});
}

inline BundleManifest small_manifest(const Model& model) {
  return {.model = *model.spec(),
          .sample_shape = {1, 4, 4},
          .transforms = Transforms{Shift{.pixels = 1}, Normalise{.mean = {0.5}, .std = {0.25}}},
          .labels = {"zero", "one", "two"},
          .metrics = {{"accuracy", 0.75}},
          .activation = "softmax",
          .loss = "cross_entropy"};
}

}  // namespace tare
