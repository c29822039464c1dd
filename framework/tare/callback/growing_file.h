// GrowingFile: a log that grows at its end, and that a resumed run continues. Internal.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "tare/base/io.h"

namespace tare {

/// Holds text until it is written to the end of a file. A write that fails, as on a full disk, is
/// logged as a warning, and the next one writes all that is missing; half of a write never stays.
class GrowingFile {
 public:
  /// Continues at `bytes` where it was told so; begins the file anew with `head` else. Where the
  /// file is missing or shorter, that is logged, and it begins anew as well. The folder is made.
  void open(const std::filesystem::path& path, std::string_view head);
  /// Lets the next open() continue a file of so many bytes, and cut off what lies behind them.
  void continue_at(int64_t bytes) { bytes_ = bytes; }
  /// Keeps text for the next write.
  void add(std::string_view text) { waiting_ += text; }
  /// Writes what add() has kept; with Flush::yes until it is on the disk.
  void write(io::Flush flush);
  /// Returns the bytes of the file that belong to the log; unset (-1) before the first open().
  [[nodiscard]] int64_t bytes() const { return bytes_; }

 private:
  void cut() const;

  std::filesystem::path path_;
  std::string waiting_;
  int64_t bytes_ = -1;
};

}  // namespace tare
