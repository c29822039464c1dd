// MachineLimits: how fast a device computes, copies and stores at most, as it was measured.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tare/callback/peak_rates.h"

namespace tare::bench {

/// Holds the rate at which a device copies blocks of one size.
struct CopyRate {
  int64_t bytes = 0;       ///< that are read and written, the size of both blocks together
  double bytes_per_s = 0;  ///< of these
};

/// Holds rates that were measured on this machine; 0: not measured.
struct MachineLimits {
  c10::Device device{c10::kCPU};       ///< to which all but the disk's belong
  std::string name{};                  ///< of the processor or the card
  int64_t threads = 1;                 ///< of the host that computed
  PeakRates products{};                ///< of square matrices, the faster of LibTorch's libraries
  PeakRates products_of_one{};         ///< likewise, by one thread of the host; 0 on a card
  std::vector<CopyRate> copies{};      ///< inside of the device, by rising bytes
  double read_bytes_per_s = 0;         ///< of a sum over more than the caches hold
  double to_device_bytes_per_s = 0;    ///< from pinned memory of the host; 0 on the host
  double from_device_bytes_per_s = 0;  ///< to pinned memory of the host; 0 on the host
  double disk_write_bytes_per_s = 0;   ///< of a file, written and flushed
  double disk_read_bytes_per_s = 0;    ///< of that file, which the system holds no more

  /// Returns the seconds that reading or writing these bytes takes, by the rate of copies of their
  /// size; >= 0. Between two sizes it is interpolated over the logarithm of the size.
  [[nodiscard]] double seconds_of_bytes(double bytes) const;
  /// Returns the seconds that these operations take as products; unset where a rate is unknown.
  [[nodiscard]] std::optional<double> seconds_of(const Flops& flops) const {
    return products.seconds(flops);
  }
};

/// Measures the rates of a device with the number of threads that LibTorch uses now; each is the
/// best of some repetitions, which take about three seconds together. `folder`: on the disk that is
/// measured, with a file of 64 MiB that is removed again; empty: no disk. Waits for the device.
/// Throws DeviceError, OutOfMemory; IoError for a folder that cannot be written.
[[nodiscard]] MachineLimits measure_limits(c10::Device device,
                                           const std::filesystem::path& folder = {});

/// Returns the rates as text in lines of at most `width` columns.
[[nodiscard]] std::string to_text(const MachineLimits& limits, size_t width);

}  // namespace tare::bench
