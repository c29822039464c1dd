// The ConfigError of a call, for tests that look at its parts.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tare/base/error.h"

namespace tare::config {

template <class Call>
ConfigError error_of(Call call) {
  try {
    call();
  } catch (const ConfigError& error) {
    return error;
  }
  ADD_FAILURE() << "no ConfigError";
  return {"test", "no ConfigError"};
}

template <class Call>
std::string message_of(Call call) {
  return error_of(call).what();
}

}  // namespace tare::config
