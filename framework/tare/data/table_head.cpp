// Finds a name in the first line of a file.
#include "tare/data/table_head.h"

#include <algorithm>
#include <string>

#include "tare/base/io.h"

namespace tare {

bool head_names(const std::filesystem::path& file, std::string_view column) {
  constexpr size_t kHeadBytes = size_t{64} << 10;
  std::string text(kHeadBytes, '\0');
  text.resize(io::File(file, io::Mode::read).read(text.data(), text.size()));
  const size_t start = text.starts_with("\xef\xbb\xbf") ? 3 : 0;  // a byte order mark
  std::string head = text.substr(start, text.find_first_of("\r\n", start) - start);
  std::erase(head, '"');
  for (size_t at = 0; at <= head.size();) {
    const size_t end = std::min(head.find_first_of(",;\t", at), head.size());
    if (head.substr(at, end - at) == column) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace tare
