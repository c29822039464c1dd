// The device on which tests train that hold on every device.
#pragma once

#include <cstdlib>
#include <string>

namespace tare::testing {

/// Returns the device that the environment variable TARE_TEST_DEVICE names, else "cpu". A test
/// program that links test_device.cpp has initialised it before its first test and parameter.
inline std::string test_device() {
  const char* const name = std::getenv("TARE_TEST_DEVICE");
  return name == nullptr ? "cpu" : name;
}

}  // namespace tare::testing
