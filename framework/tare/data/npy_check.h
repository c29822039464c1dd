// Looks through the array of a .npy file for what the data set npy would refuse.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tare {

/// Holds what check_npy() has found.
struct NpyCheck {
  std::filesystem::path file{};  ///< as it was given
  std::string dtype{};           ///< of NumPy: "float32"
  std::vector<int64_t> shape{};  ///< of the array
  std::string problem{};         ///< would be an error of the data set; empty: there is none
  std::string warning{};         ///< would be a warning of the data set; empty: there is none
  /// Counts the elements that are NaN or infinite, or that float32 does not hold.
  int64_t not_finite = 0;
  std::vector<int64_t> first_not_finite{};  ///< the index of the first of them; empty: none
  double least = 0, mean = 0, most = 0;     ///< of the other elements
};

/// Reads the array of a .npy file, of inputs or of targets. Throws as read_npy().
[[nodiscard]] NpyCheck check_npy(const std::filesystem::path& file, bool are_inputs);

}  // namespace tare
