#include "tare/memory/device_table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "tare/base/bytes.h"
#include "tare/memory/backend.h"

namespace tare::memory {
namespace {

constexpr size_t kColumns = 8;
using Row = std::array<std::string, kColumns>;

std::string known_bytes(int64_t bytes) { return bytes > 0 ? format_bytes(bytes) : "-"; }

Row row_of(const DeviceBackend& backend) {
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

std::string device_table() {
  std::vector<Row> rows{
      {"device", "name", "load", "tensors", "reserved", "process", "available", "total"}};
  for (const auto device : devices()) rows.push_back(row_of(backend(device)));
  std::array<size_t, kColumns> widths{};
  for (const Row& row : rows)
    for (size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const Row& row : rows) {
    for (size_t i = 0; i < kColumns; ++i) {
      const std::string space(widths[i] - row[i].size(), ' ');
      text += (i == 0 ? "" : "  ") + (i < 2 ? row[i] + space : space + row[i]);
    }
    text += '\n';
  }
  return text;
}

void print_devices(std::ostream& out) { out << device_table() << std::flush; }

}  // namespace tare::memory
