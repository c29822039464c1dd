// Full counts of kills, mutations and cycles run where TARE_DEEP=1 (tests/run.sh --deep); a reduced
// number otherwise.
#pragma once

#include <cstdlib>
#include <string_view>

namespace tare::testing {

[[nodiscard]] inline bool deep() {
  const char* value = std::getenv("TARE_DEEP");
  return value != nullptr && std::string_view(value) == "1";
}

template <class T>
[[nodiscard]] T reduced(T normal, T full) {
  return deep() ? full : normal;
}

}  // namespace tare::testing
