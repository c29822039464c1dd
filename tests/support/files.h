// Files of a run, as tests compare them.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace tare::testing {

inline std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The rows of a CSV log without their last column, the time.
inline std::string rows_without_time(const std::filesystem::path& path) {
  std::istringstream file(content_of(path));
  std::string rows;
  for (std::string line; std::getline(file, line);) rows += line.substr(0, line.rfind(',')) + '\n';
  return rows;
}

}  // namespace tare::testing
