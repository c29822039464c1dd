// Finds the devices that names stand for.
#include "tare/runtime/device_name.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <utility>

#include "tare/base/error.h"
#include "tare/memory/backend.h"
#include "tare/memory/oom.h"
#include "tare/memory/withdrawn.h"
#include "tare/runtime/absent_device.h"
#include "tare/runtime/does_not_fit.h"

namespace tare::runtime {
namespace {

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

/// Says why a device cannot be opened.
struct Refusal {
  std::string why;  // ends with what to do
  bool out_of_memory = false;
};

/// Opens a device; unset: it is open.
std::optional<Refusal> refusal_of(c10::Device device) {
  try {
    const memory::DeviceBackend& backend = memory::backend(device);
    if (!backend.traits().is_host) (void)backend.memory_info();
    return std::nullopt;
  } catch (const c10::Error& error) {
    if (const auto oom = memory::classify(std::current_exception()))
      return Refusal{oom->message, /*out_of_memory=*/true};
    const std::string text = error.what_without_backtrace();
    return Refusal{text.substr(0, text.find('\n')) + "; look at `nvidia-smi` and `dmesg`"};
  }
}

/// Returns "cuda:0 'NVIDIA H200'".
std::string described(c10::Device device) {
  return device.str() + " '" + printable(memory::backend(device).name()) + "'";
}

/// Returns the accelerators beside one of them, as advice; empty: there is no other.
std::string others_than(c10::Device device) {
  std::string names;
  for (const c10::Device other : memory::devices())
    if (other != device && !memory::backend(other).traits().is_host)
      names += (names.empty() ? "" : ", ") + other.str();
  return names.empty() ? "" : "; there is also " + names;
}

/// Warns of the devices of the same kind before this one, which "auto" has passed over.
void warn_of_passed_over(c10::Device used) {
  if (memory::backend(used).traits().is_host) return;
  warn_of_absent(used.str(), [&](const AbsentDevice& absent) {
    const auto passed_over = parts_of(absent.name);
    return passed_over && passed_over->index && *passed_over->index < used.index();
  });
}

[[noreturn]] void throw_unopened(c10::Device device, const Refusal& refusal) {
  const std::string text = described(device) + " cannot be opened: " + refusal.why +
                           others_than(device) + "; device: auto takes what can be opened";
  if (refusal.out_of_memory) throw DoesNotFit("[device] " + text);
  throw DeviceError("device", text);
}

}  // namespace

std::optional<DeviceName> parts_of(const std::string& name) {
  const size_t colon = name.find(':');
  if (colon == std::string::npos) return DeviceName{name};
  int index = 0;
  const char* first = name.data() + colon + 1;
  const char* last = name.data() + name.size();
  const auto [end, error] = std::from_chars(first, last, index);
  if (error != std::errc() || end != last || index < 0 || index > 127) return std::nullopt;
  return DeviceName{name.substr(0, colon), index};
}

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
  std::vector<std::string> known{"auto", "cpu"};
  known.insert(known.end(), types.begin(), types.end());
  const std::string type = name.substr(0, name.find(':'));
  const bool is_known = std::ranges::find(known, type) != known.end();
  throw ConfigError(Source{}, "device",
                    "is not known" + (is_known ? "" : did_you_mean(type, known)), allowed,
                    printable(name));
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
  if (found != all.end()) {
    warn_of_lost_cards(found->str());
    return *found;
  }
  if (name == "auto") {
    warn_of_absent("the host", [](const AbsentDevice&) { return true; });
    return c10::kCPU;
  }
  std::string present;
  for (const auto& d : all) present += (present.empty() ? "" : ", ") + d.str();
  std::string why = why_absent(name);
  if (why.empty()) why = lost_cards();
  if (!why.empty()) why.insert(0, ": ");
  throw DeviceError("device", name + " is not there, only " + present + why + "; use device: auto");
}

c10::Device open_device(const std::string& name) {
  while (true) {
    const c10::Device device = parse_device(name);
    const auto refusal = refusal_of(device);
    if (!refusal) {
      if (name == "auto") warn_of_passed_over(device);
      return device;
    }
    if (name != "auto") throw_unopened(device, *refusal);
    note_absent(
        {.name = device.str(), .why = refusal->why, .worth_a_warning = true, .is_there = true});
    memory::withdraw(device);
  }
}

std::vector<c10::Device> parse_devices(const std::vector<std::string>& names, bool all) {
  std::vector<c10::Device> found;
  for (const std::string& name : names) {
    const c10::Device first = parse_device(name);
    if (!all || name != "auto" || first.is_cpu()) {
      found.push_back(first);
      continue;
    }
    const std::string type = memory::backend(first).traits().type;
    for (const c10::Device device : memory::devices())
      if (memory::backend(device).traits().type == type) found.push_back(device);
  }
  return found;
}

std::vector<c10::Device> open_devices(const std::vector<std::string>& names, bool all) {
  if (names.size() == 1 && !all) return {open_device(names.front())};
  for (const std::string& name : names) (void)open_device(name);  // "auto" passes over some
  std::vector<c10::Device> devices = parse_devices(names, all);
  for (const c10::Device device : devices) (void)open_device(device.str());
  return devices;
}

}  // namespace tare::runtime
