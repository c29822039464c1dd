// Converts the exception of a call to text that tests compare.
#pragma once

#include <exception>
#include <string>

#include "tare/base/error.h"

namespace tare::testing {

/// "FormatError: what()" of what `call` throws, or "accepted".
template <class Call>
std::string outcome_of(Call call) {
  const auto described = [](const char* type, const Error& error) {
    return std::string(type) + ": " + error.what();
  };
  try {
    call();
  } catch (const ConfigError& error) {
    return described("ConfigError", error);
  } catch (const StateError& error) {
    return described("StateError", error);
  } catch (const ShapeError& error) {
    return described("ShapeError", error);
  } catch (const DeviceError& error) {
    return described("DeviceError", error);
  } catch (const DivergedError& error) {
    return described("DivergedError", error);
  } catch (const IoError& error) {
    return described("IoError", error);
  } catch (const FormatError& error) {
    return described("FormatError", error);
  } catch (const std::exception& error) {
    return std::string("another error: ") + error.what();
  }
  return "accepted";
}

/// Returns what the ConfigError that `call` throws says, or "accepted".
template <class Call>
std::string config_error_of(Call call) {
  try {
    call();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace tare::testing
