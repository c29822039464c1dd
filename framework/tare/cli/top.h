// Collects the figures of `tare top`: the machine's devices, their load, memory and processes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tare/base/terminal.h"

namespace tare::cli {

/// Describes a process that holds memory of a device. User and command are text of others.
struct TopProcess {
  int64_t id = 0;                  ///< of the process
  std::optional<int64_t> bytes{};  ///< unset where the driver hides it
  std::string user{}, command{};   ///< empty where /proc does not show the process
};

/// Describes a device with all that runs on it, this program included.
struct TopDevice {
  std::string id{};              ///< "host", "cuda:0", "mig:0.2"
  std::string uuid{};            ///< that CUDA_VISIBLE_DEVICES takes; empty: the host
  std::string name{};            ///< of the hardware
  std::optional<double> load{};  ///< 0 to 1
  int64_t total_bytes = 0, used_bytes = 0, available_bytes = 0;  ///< 0 where they cannot be read
  std::optional<int64_t> limit_bytes{};  ///< host: of the control group; then it bounds the others
  int64_t context_bytes = 0;  ///< card: what a process is expected to take beside its tensors
  std::vector<TopProcess> processes{};  ///< most bytes first
};

/// Holds the figures of `tare top` at one moment. A value.
struct Top {
  std::string driver{};              ///< version; empty: no NVIDIA driver
  std::vector<TopDevice> devices{};  ///< the host first
  std::vector<size_t> lost_cards{};  ///< numbers of cards that the driver has lost
};

/// Returns the host, with the `processes` largest by resident set, and every card of NVIDIA's
/// driver with all its processes, in the order of the PCI bus. Makes no context on a card. The
/// host's load is that since the previous call; at the first call, since boot.
[[nodiscard]] Top look(size_t processes);

/// Returns two tables, at most `width` columns wide where their names and commands can be cut. No
/// control character of a name gets through.
[[nodiscard]] std::string text(const Top& top, size_t width = kAnyWidth);
/// Formats one line: driver, devices[] {id, name, load, total_bytes, used_bytes, available_bytes,
/// limit_bytes, processes[] {id, bytes, user, command}}, lost_cards[]; null for what is unset.
/// ASCII only.
[[nodiscard]] std::string json(const Top& top);

}  // namespace tare::cli
