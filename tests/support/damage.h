// Damaging files, and what the readers say to it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <random>
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

/// One byte, in place.
inline void overwrite(const std::filesystem::path& path, size_t at, char byte) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(at)).put(byte);
}

/// `whole` with one bit changed.
inline std::string flipped(std::string whole, size_t bit) {
  whole[bit / 8] = static_cast<char>(whole[bit / 8] ^ (1 << (bit % 8)));
  return whole;
}

/// `whole` cut off, or with a range lost, doubled, zeroed, moved, or replaced by one of `other`, as
/// lost and misplaced blocks leave a file; never equal to it. The same for the same state of
/// `random` everywhere.
inline std::string spliced(const std::string& whole, const std::string& other,
                           std::mt19937_64& random) {
  const auto below = [&](size_t bound) { return static_cast<size_t>(random() % bound); };
  for (;;) {
    std::string changed = whole;
    const size_t at = below(whole.size());
    const size_t length = 1 + below(std::min<size_t>(whole.size() - at, 4096));
    switch (below(6)) {
      case 0:
        changed.resize(at);
        break;
      case 1:
        changed.erase(at, length);
        break;
      case 2:
        changed.insert(at, whole, at, length);
        break;
      case 3:
        std::fill_n(changed.begin() + static_cast<std::ptrdiff_t>(at), length, '\0');
        break;
      case 4:
        changed.replace(at, length, whole, below(whole.size() - length + 1), length);
        break;
      default:
        changed.replace(at, length, other, std::min(at, other.size()), length);
    }
    if (changed != whole) return changed;
  }
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
