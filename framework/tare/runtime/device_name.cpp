// Finds the devices that names stand for.
#include "tare/runtime/device_name.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "tare/base/error.h"
#include "tare/memory/backend.h"
#include "tare/runtime/absent_device.h"

namespace tare::runtime {
namespace {

/// A name in its parts: "cuda:1" is a device of the type cuda, number 1.
struct Name {
  std::string type;
  std::optional<int> index{};  // unset: the first
};

std::optional<Name> parts_of(const std::string& name) {
  const size_t colon = name.find(':');
  if (colon == std::string::npos) return Name{name};
  int index = 0;
  const char* first = name.data() + colon + 1;
  const char* last = name.data() + name.size();
  const auto [end, error] = std::from_chars(first, last, index);
  if (error != std::errc() || end != last || index < 0 || index > 127) return std::nullopt;
  return Name{name.substr(0, colon), index};
}

/// Returns the types of accelerators that have backends, and the type whose plug-in may still be
/// loaded.
std::vector<std::string> accelerators() {
  std::vector<std::string> types{"cuda"};
  for (const c10::Device device : memory::devices()) {
    const auto traits = memory::backend(device).traits();
    if (!traits.is_host && std::ranges::find(types, traits.type) == types.end())
      types.push_back(traits.type);
  }
  return types;
}

}  // namespace

std::vector<std::string> device_names() {
  std::vector<std::string> names{"auto", "cpu"};
  for (auto& type : accelerators()) names.push_back(std::move(type));
  return names;
}

void check_device_name(const std::string& name) {
  if (name == "auto" || name == "cpu") return;
  const auto parts = parts_of(name);
  const auto types = accelerators();
  if (parts && std::ranges::find(types, parts->type) != types.end()) return;
  std::string allowed = "auto, cpu";
  for (const auto& type : types)
    allowed += (&type == &types.back() ? ", " + type + " or " + type + ":N" : ", " + type);
  throw ConfigError(Source{}, "device", "is not known", allowed, printable(name));
}

c10::Device parse_device(const std::string& name) {
  check_device_name(name);
  if (name == "cpu") return c10::kCPU;
  const auto all = memory::devices();
  const auto wanted = parts_of(name);
  const auto found = std::ranges::find_if(all, [&](c10::Device device) {
    const auto traits = memory::backend(device).traits();
    if (traits.is_host) return false;
    if (name == "auto") return true;
    return traits.type == wanted->type && (!wanted->index || *wanted->index == device.index());
  });
  if (found != all.end()) return *found;
  if (name == "auto") {
    warn_of_absent();
    return c10::kCPU;
  }
  std::string present;
  for (const auto& d : all) present += (present.empty() ? "" : ", ") + d.str();
  std::string why = why_absent(name);
  if (!why.empty()) why.insert(0, ": ");
  throw DeviceError("device", name + " is not there, only " + present + why + "; use device: auto");
}

}  // namespace tare::runtime
