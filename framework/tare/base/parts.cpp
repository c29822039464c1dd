// Divides texts at a separator.
#include "tare/base/parts.h"

#include <sstream>

namespace tare {

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    const size_t from = part.find_first_not_of(' ');
    if (from != std::string::npos) parts.push_back(part.substr(from));
  }
  return parts;
}

}  // namespace tare
