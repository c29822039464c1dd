// Converts the exception of a call to text that tests compare.
#pragma once

#include <exception>
#include <string>

#include "tare/base/error.h"

namespace tare::testing {

/// "FormatError: what()" of what `call` throws, or "accepted".
template <class Call>
std::string outcome_of(Call call) {
  const auto told = [](const char* type, const Error& error) {
    return std::string(type) + ": " + error.what();
  };
  try {
    call();
  } catch (const ConfigError& error) {
    return told("ConfigError", error);
  } catch (const StateError& error) {
    return told("StateError", error);
  } catch (const ShapeError& error) {
    return told("ShapeError", error);
  } catch (const DeviceError& error) {
    return told("DeviceError", error);
  } catch (const DivergedError& error) {
    return told("DivergedError", error);
  } catch (const IoError& error) {
    return told("IoError", error);
  } catch (const FormatError& error) {
    return told("FormatError", error);
  } catch (const std::exception& error) {
    return std::string("another error: ") + error.what();
  }
  return "accepted";
}

}  // namespace tare::testing
