// Finds a name in the first line of a file.
#include "tare/data/table_head.h"

#include <algorithm>
#include <string>

#include "tare/base/io.h"

namespace tare {

bool names_column(std::string_view head, std::string_view column) {
  std::string names(head.starts_with("\xef\xbb\xbf") ? head.substr(3) : head);  // a byte order mark
  std::erase(names, '"');
  for (size_t at = 0; at <= names.size();) {
    const size_t end = std::min(names.find_first_of(",;\t", at), names.size());
    if (names.substr(at, end - at) == column) return true;
    at = end + 1;
  }
  return false;
}

bool head_names(const std::filesystem::path& file, std::string_view column) {
  return names_column(first_line(file), column);
}

std::string first_line(const std::filesystem::path& file) {
  constexpr size_t kMostBytes = size_t{64} << 10;
  std::string text(kMostBytes, '\0');
  text.resize(io::File(file, io::Mode::read).read(text.data(), text.size()));
  return text.substr(0, text.find_first_of("\r\n"));
}

}  // namespace tare
