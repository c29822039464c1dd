// Prints what a recipe took in time and memory.
#pragma once

#include <tare/tare.h>

#include <chrono>
#include <iostream>

/// Prints at its end the wall time, and the highest bytes of tensors on the host above its start.
class Measured {
 public:
  Measured() = default;
  ~Measured() {
    const std::chrono::duration<double> seconds = Clock::now() - start_;
    std::cout << "took " << tare::format_seconds(seconds.count()) << ", peak "
              << tare::format_bytes(peak_.peak_above_start_bytes()) << " above the start\n";
  }
  Measured(const Measured&) = delete;
  Measured& operator=(const Measured&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  tare::memory::PeakScope peak_{c10::kCPU};
  Clock::time_point start_ = Clock::now();
};
