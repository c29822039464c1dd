// Reads the devices and writes them as a table or as JSON.
#include "tare/cli/top.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/table.h"
#include "tare/cuda/nvml.h"
#include "tare/memory/cgroup.h"
#include "tare/memory/context.h"
#include "tare/memory/machine.h"
#include "tare/runtime/process.h"

namespace tare::cli {
namespace {

constexpr size_t kNameBytes = 40, kUserBytes = 16, kCommandBytes = 60;

TopProcess described(int64_t id, std::optional<int64_t> bytes) {
  auto owner = runtime::owner_of(id);
  return {id, bytes, std::move(owner.user), std::move(owner.command)};
}

TopDevice host(size_t processes) {
  const auto memory = memory::machine_memory();
  TopDevice device{.id = "host",
                   .name = memory::processor_name(),
                   .load = memory::processor_utilisation(),
                   .total_bytes = memory.total_bytes,
                   .used_bytes = memory.total_bytes - memory.available_bytes,
                   .available_bytes = memory.available_bytes};
  // Version 1 writes a limit of 8 EiB where it has none.
  if (const auto group = memory::cgroup_memory("/");
      group && group->limit_bytes <= memory.total_bytes)
    device.limit_bytes = group->limit_bytes;
  for (const auto& process : runtime::largest_processes(processes))
    device.processes.push_back(described(process.id, process.resident_bytes));
  return device;
}

TopDevice card(const cuda::NvmlDevice& nvml) {
  const auto memory = nvml.memory().value_or(cuda::NvmlMemory{});
  TopDevice device{.id = nvml.id(),
                   .uuid = nvml.uuid(),
                   .name = nvml.name(),
                   .load = nvml.utilisation(),
                   .total_bytes = memory.total_bytes,
                   .used_bytes = memory.used_bytes,
                   .available_bytes = memory.free_bytes,
                   .context_bytes = memory::context_bytes(nvml.name())};
  for (const auto& process : nvml.processes())
    device.processes.push_back(described(process.id, process.bytes));
  std::ranges::stable_sort(device.processes, std::ranges::greater{}, &TopProcess::bytes);
  return device;
}

/// Returns the lines between the two tables: what limits a device, and cards that cannot be used.
std::string notes(const Top& top) {
  std::string lines;
  for (const auto& device : top.devices) {
    if (device.limit_bytes)
      lines += device.id + ": limited to " + format_bytes(*device.limit_bytes) +
               " by the control group\n";
    if (device.total_bytes > 0 && device.available_bytes < device.context_bytes)
      lines += device.id + ": less is available than context and libraries of a process take (" +
               format_bytes(device.context_bytes) +
               "), so `device: auto` passes over it where it cannot be opened\n";
  }
  for (const size_t number : top.lost_cards)
    lines += "card " + std::to_string(number) +
             ": is lost; look at `nvidia-smi` and `dmesg`; CUDA counts the others from 0\n";
  return lines;
}

std::string percent(double share) {
  return std::to_string(std::lround(100 * std::clamp(share, 0.0, 1.0))) + " %";
}

TableRow device_row(const TopDevice& device) {
  TableRow row{device.id, printable(device.name, kNameBytes),
               device.load ? percent(*device.load) : "-"};
  if (device.total_bytes <= 0) {
    row.resize(7, "-");
    return row;
  }
  for (const int64_t bytes : {device.used_bytes, device.available_bytes, device.total_bytes})
    row.push_back(format_bytes(bytes));
  row.push_back(
      percent(static_cast<double>(device.used_bytes) / static_cast<double>(device.total_bytes)));
  return row;
}

TableRow process_row(const TopDevice& device, const TopProcess& process) {
  return {device.id, std::to_string(process.id),
          process.bytes ? format_bytes(*process.bytes) : "hidden",
          process.user.empty() ? "-" : printable(process.user, kUserBytes),
          process.user.empty() ? "not in /proc" : printable(process.command, kCommandBytes)};
}

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json to_json(const TopDevice& device) {
  Json processes = Json::array();
  for (const auto& process : device.processes)
    processes.push_back({{"id", process.id},
                         {"bytes", or_null(process.bytes)},
                         {"user", process.user},
                         {"command", process.command}});
  return {{"id", device.id},
          {"uuid", device.uuid},
          {"name", device.name},
          {"load", or_null(device.load)},
          {"total_bytes", device.total_bytes},
          {"used_bytes", device.used_bytes},
          {"available_bytes", device.available_bytes},
          {"limit_bytes", or_null(device.limit_bytes)},
          {"processes", processes}};
}

}  // namespace

Top look(size_t processes) {
  Top top{.driver = cuda::nvml_driver_version(), .devices = {host(processes)}};
  for (const auto& nvml : cuda::NvmlDevice::all()) top.devices.push_back(card(nvml));
  top.lost_cards = cuda::NvmlDevice::lost_cards();
  return top;
}

std::string text(const Top& top, size_t width) {
  std::vector<TableRow> devices, processes;
  for (const auto& device : top.devices) {
    devices.push_back(device_row(device));
    for (const auto& process : device.processes) processes.push_back(process_row(device, process));
  }
  const std::string driver = top.driver.empty()
                                 ? "no NVIDIA driver"
                                 : "NVIDIA driver " + printable(top.driver, kNameBytes);
  return text_table({{"device"},
                     {"name"},
                     {"load", true},
                     {"used", true},
                     {"available", true},
                     {"total", true},
                     {"memory", true}},
                    devices, width) +
         notes(top) + driver + "\n\n" +
         text_table({{"device"}, {"process", true}, {"memory", true}, {"user"}, {"command"}},
                    processes, width);
}

std::string json(const Top& top) {
  Json devices = Json::array();
  for (const auto& device : top.devices) devices.push_back(to_json(device));
  const Json all{{"driver", top.driver.empty() ? Json() : Json(top.driver)},
                 {"devices", devices},
                 {"lost_cards", top.lost_cards}};
  return all.dump(-1, ' ', true, Json::error_handler_t::replace);
}

}  // namespace tare::cli
