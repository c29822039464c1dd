// Timeline: a timeline.csv of any length, reduced to what a page can show. Internal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tare::report {

/// Holds blocks that were allocated within the timeline and were still alive at its end.
struct AliveGroup {
  std::string group{}, phase{};  ///< phase: in which they were allocated
  int64_t blocks = 0, bytes = 0;
};

/// Holds a timeline, its blocks grouped by category where the file has that column, else by the
/// phase they were allocated in; what was alive before the first event is a group of its own.
struct Timeline {
  bool by_category = false;
  int64_t events = 0;
  double end_s = 0;

  std::vector<double> stretch_s{};  ///< starts of at most kBuckets equal stretches, then the end
  std::vector<std::string> groups{};
  std::vector<std::vector<double>> bytes{};  ///< [group][stretch] at its highest moment, exactly
  std::vector<double> lowest_bytes{};        ///< sum over the groups at its lowest
  std::vector<std::string> phases{};
  std::vector<std::vector<double>> shares{};  ///< [phase][stretch] of its time, 0 to 1

  int64_t peak_bytes = 0;
  double peak_s = 0;
  std::string peak_phase{};
  std::vector<int64_t> at_peak{};  ///< by group; their sum is peak_bytes

  std::vector<AliveGroup> left{};  ///< most bytes first
};

inline constexpr size_t kBuckets = 400;
/// Groups and phases beyond this number share one that is named "more".
inline constexpr size_t kGroups = 24;

/// Reads the file once, in memory that does not grow with it except for the blocks alive at a time.
/// Throws IoError; FormatError, with the line, for what `tare run --record-memory` does not write.
[[nodiscard]] Timeline read_timeline(const std::filesystem::path& path);

}  // namespace tare::report
