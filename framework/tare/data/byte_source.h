// ByteSource: the bytes of a file from its beginning to its end, plain or gzip. Internal.
#pragma once

#include <zlib.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "tare/base/io.h"

namespace tare {

/// Reads the bytes of a file. Gzip is recognised by the file's first two bytes. Every call throws
/// IoError, and FormatError for a gzip stream that is broken or cut. Neither copied nor moved.
class ByteSource {
 public:
  /// Opens a file; `operation` stands in front of every FormatError.
  ByteSource(const std::filesystem::path& path, std::string operation);
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  [[nodiscard]] bool gzip() const { return gzip_; }
  [[nodiscard]] int64_t file_size() const { return file_.size(); }  ///< as it is stored
  [[noreturn]] void refuse(std::string part, std::string_view problem) const;

  /// Reads exactly `size` bytes, else throws FormatError naming `part`.
  void read(void* out, size_t size, const char* part);
  /// Reads the bytes that are left, `size` at most, and returns how many it read.
  size_t take(uint8_t* out, size_t size);
  /// Throws FormatError unless everything has been read.
  void expect_end();

 private:
  void refill();
  size_t inflate_into(uint8_t* out, size_t size);
  void feed();

  std::string operation_;
  io::File file_;
  std::array<uint8_t, 1 << 16> buffer_{};
  size_t have_ = 0, used_ = 0;
  bool gzip_ = false, ended_ = false;
  z_stream stream_{};
};

}  // namespace tare
