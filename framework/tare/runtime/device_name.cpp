// Finds the devices that names stand for.
#include "tare/runtime/device_name.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "tare/base/error.h"
#include "tare/memory/backend.h"

namespace tare::runtime {
namespace {

std::optional<int> index_of(const std::string& name) {
  int index = 0;
  const char* first = name.data() + 5;  // behind "cuda:"
  const char* last = name.data() + name.size();
  const auto [end, error] = std::from_chars(first, last, index);
  if (error != std::errc() || end != last || index < 0 || index > 127) return std::nullopt;
  return index;
}

}  // namespace

void check_device_name(const std::string& name) {
  if (name == "auto" || name == "cpu" || name == "cuda") return;
  if (name.starts_with("cuda:") && index_of(name)) return;
  throw ConfigError(Source{}, "device", "is no device", "auto, cpu, cuda or cuda:N",
                    printable(name));
}

c10::Device parse_device(const std::string& name) {
  check_device_name(name);
  if (name == "cpu") return c10::kCPU;
  const auto all = memory::devices();
  const auto first = std::ranges::find_if(all, [](c10::Device d) { return d.is_cuda(); });
  if (name == "auto") return first == all.end() ? c10::Device(c10::kCPU) : *first;
  const auto found =
      name == "cuda"
          ? first
          : std::ranges::find(
                all, c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(*index_of(name))));
  if (found != all.end()) return *found;
  std::string present;
  for (const auto& d : all) present += (present.empty() ? "" : ", ") + d.str();
  throw DeviceError("device", name + " is not there, only " + present + "; use device: auto");
}

}  // namespace tare::runtime
