// A model with the manifest and the tensors that a bundle of it has.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tare/interchange/export_file.h"
#include "tare/model/registry.h"
#include "tare/model/stored.h"

namespace tare::interchange {

struct Exported {
  explicit Exported(const std::string& name, ModelOptions options, BundleManifest described)
      : model(models::make(name, options)), manifest(std::move(described)) {
    manifest.model = *model.spec();
    tensors = stored_state(model);
  }
  Model model;
  BundleManifest manifest;
  std::vector<NamedTensor> tensors;
};

}  // namespace tare::interchange
