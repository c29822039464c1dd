// Finds the tensors of two devices behind an error of a forward.
#include "tare/model/devices.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "tare/base/error.h"

namespace tare {
namespace {

struct Placed {
  std::string name;
  c10::Device device = c10::kCPU;

  [[nodiscard]] std::string str() const { return name + " on " + device.str(); }
};

std::vector<Placed> state_of(const Model& model) {
  std::vector<Placed> all;
  for (const auto& parameter : model.parameters())
    all.push_back({"parameter '" + printable(parameter.name) + "'", parameter.tensor.device()});
  for (const auto& buffer : model.buffers())
    all.push_back({"buffer '" + printable(buffer.name) + "'", buffer.tensor.device()});
  return all;
}

struct Mismatch {
  Placed first, second;
};

/// Returns the first tensor that is not on the device of most tensors, and one that is.
std::optional<Mismatch> mismatch(const Model& model, const Batch& batch) {
  std::vector<Placed> all;
  for (const auto& [name, tensor] : batch.inputs)
    all.push_back({name == "input" ? name : "input '" + printable(name) + "'", tensor.device()});
  for (Placed& placed : state_of(model)) all.push_back(std::move(placed));
  const auto on = [&](c10::Device device) {
    return std::ranges::count(all, device, &Placed::device);
  };
  const auto usual = std::ranges::max_element(
      all, [&](const Placed& a, const Placed& b) { return on(a.device) < on(b.device); });
  const auto odd = std::ranges::find_if(
      all, [&](const Placed& placed) { return placed.device != usual->device; });
  if (usual == all.end() || odd == all.end()) return {};
  return Mismatch{*odd, *usual};
}

bool is_of_devices(std::string_view text) {
  constexpr std::array<std::string_view, 6> kWords = {
      "on the same device",   "is not on the expected device",
      "on different devices", "should be the same",
      "meta tensor",          "Meta tensors"};
  return std::ranges::any_of(kWords, [=](auto words) { return text.find(words) != text.npos; });
}

}  // namespace

void explain_devices(const std::string& where, const Model& model, const Batch& batch,
                     const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  if (!is_of_devices(text)) return;
  if (const auto found = mismatch(model, batch))
    throw DeviceError(where, found->first.str(), found->second.str());
  const bool has_devices = text.find("device") != text.npos || text.find("meta") != text.npos;
  if (!has_devices || batch.inputs.empty()) return;
  throw DeviceError(
      where, "a tensor that the forward makes is not on " + batch.input().device().str() +
                 ", where its input and parameters are: " + printable(text) + "; make it there");
}

void check_output_devices(const std::string& where, const Model& model, const Batch& batch,
                          const Outputs& outputs) {
  const auto on_meta = [](const at::Tensor& one) { return one.defined() && one.is_meta(); };
  if (batch.inputs.empty() || batch.inputs.front().tensor.is_meta()) return;
  if (std::ranges::none_of(outputs, on_meta)) return;
  if (const auto found = mismatch(model, batch))
    throw DeviceError(where, found->first.str(), found->second.str());
  throw DeviceError(where, "output on meta", "input on " + batch.input().device().str());
}

}  // namespace tare
