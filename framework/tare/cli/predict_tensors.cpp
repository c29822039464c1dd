// Reads the inputs of a model from a safetensors file.
#include "tare/cli/predict_tensors.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tare/base/error.h"
#include "tare/checkpoint/safetensors.h"
#include "tare/cli/predict_arrays.h"

namespace tare::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInput = "input";  // the short name of the first input

/// Returns the names under which a file of tensors has the model's first input: its own, and
/// `input`, the short form, unless another input is called so.
std::vector<std::string> first_names(const BundleManifest& manifest) {
  const std::string& own = manifest.input_name;
  if (own.empty() || own == kInput) return {kInput};
  const auto& more = manifest.more_inputs;
  if (std::ranges::find(more, kInput, &BundleInput::name) != more.end()) return {own};
  return {own, kInput};
}

}  // namespace

Batch tensors_in(const fs::path& path, const BundleManifest& manifest) {
  const auto file = checkpoint::SafeTensors::open(path);
  const std::vector<std::string> first = first_names(manifest);
  std::string allowed = first.front() + (first.size() > 1 ? " (or input)" : "");
  for (const BundleInput& input : manifest.more_inputs) allowed += ", " + input.name;
  const auto refuse = [&](const std::string& name, const std::string& problem) {
    throw FormatError("predict", path.string(), printable(name),
                      problem + "; the model's inputs are: " + printable(allowed, 2000));
  };
  NamedTensors all, named;
  for (const auto& [name, tensor] : file.all()) all.push_back({name, tensor});
  const auto take = [&](const std::vector<std::string>& names) {
    const auto found = std::ranges::find_first_of(all, names, {}, &NamedTensor::name);
    if (found == all.end()) refuse(names.front(), "is missing");
    named.push_back(*found);
    all.erase(found);
  };
  take(first);
  for (const BundleInput& input : manifest.more_inputs) take({input.name});
  if (!all.empty()) refuse(all.front().name, "is not an input of the model");
  for (const auto& [name, tensor] : named)
    if (tensor.dim() < 1 || tensor.size(0) != named.front().tensor.size(0))
      throw FormatError("predict", path.string(), printable(name),
                        "must be [samples, ...], with as many samples as every other input");
  warn_of_levels(named.front().tensor, manifest, path.string());
  return Batch(std::move(named), {});
}

}  // namespace tare::cli
