// Collects load and memory of all devices, and prints them.
#include "tare/memory/device_table.h"

#include <cmath>
#include <vector>

#include "tare/base/bytes.h"
#include "tare/base/table.h"
#include "tare/memory/backend.h"

namespace tare::memory {
namespace {

std::string known_bytes(int64_t bytes) { return bytes > 0 ? format_bytes(bytes) : "-"; }

TableRow row_of(const DeviceBackend& backend) {
  const Usage usage = backend.usage();
  const MemoryInfo info = backend.memory_info();
  const auto load = backend.utilisation();
  return {backend.device().str(),
          backend.name(),
          load ? std::to_string(std::lround(100 * *load)) + " %" : "-",
          format_bytes(usage.allocated_bytes),
          format_bytes(usage.reserved_bytes),
          known_bytes(usage.process_bytes),
          known_bytes(info.available_bytes),
          known_bytes(info.total_bytes)};
}

}  // namespace

std::string device_table(size_t width) {
  std::vector<TableRow> rows;
  for (const auto device : devices()) rows.push_back(row_of(backend(device)));
  return text_table({{.head = "device"},
                     {.head = "name", .whole = true},
                     {.head = "load", .figure = true},
                     {.head = "tensors", .figure = true},
                     {.head = "reserved", .figure = true},
                     {.head = "process", .figure = true},
                     {.head = "available", .figure = true},
                     {.head = "total", .figure = true}},
                    rows, width);
}

void print_devices(std::ostream& out) { out << device_table(width_for(out)) << std::flush; }

}  // namespace tare::memory
