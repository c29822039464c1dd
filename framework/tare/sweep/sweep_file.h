// SweepFile: a sweep's file that may be edited while the sweep runs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tare/sweep/sweep_options.h"

namespace tare::sweep {

/// Reads the file of a sweep, which may be edited while the sweep runs. Not thread-safe.
class SweepFile {
 public:
  /// Reads a sweep from a file and overrides, as read_sweep() does.
  using Read = SweepOptions (*)(const std::filesystem::path&, const std::vector<std::string>&);

  /// Reads the file by `read`, and throws as that does.
  SweepFile(std::filesystem::path path, std::vector<std::string> overrides, Read read = read_sweep);

  /// Returns the options as they were read last.
  [[nodiscard]] const SweepOptions& options() const { return options_; }
  /// Returns the new options, if the text has changed since the last call. One that cannot be read
  /// is shown once as a warning, and nothing has changed. Costs one stat; editors that write the
  /// file in place, and those that replace it, are both noticed.
  [[nodiscard]] std::optional<SweepOptions> changed();

 private:
  /// Holds the attributes of the file that a write changes.
  struct Mark {
    int64_t seconds = 0, nanoseconds = 0, size = -1;
    uint64_t inode = 0;
    bool operator==(const Mark&) const = default;
  };
  [[nodiscard]] Mark mark() const;

  std::filesystem::path path_;
  std::vector<std::string> overrides_;
  Read read_;
  Mark mark_;
  std::string text_;
  SweepOptions options_;
};

}  // namespace tare::sweep
