// Damaging files, and what the readers say to it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "tare/base/error.h"
#include "tare/base/io.h"

namespace tare::testing {

/// In place, as a fault of the disk would change it.
inline void overwrite(const std::filesystem::path& path, std::string_view content) {
  io::File file(path, io::Mode::create);
  file.write(content);
  file.close();
}

/// The part named by the FormatError that `call` throws; what else happened otherwise.
template <class Call>
std::string refused_part(Call call) {
  try {
    call();
  } catch (const FormatError& error) {
    return error.part();
  } catch (const std::exception& error) {
    return std::string("another error: ") + error.what();
  }
  return "accepted";
}

}  // namespace tare::testing
