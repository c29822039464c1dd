// Writes a zip archive whose entries are stored without compression.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tare/base/io.h"

namespace tare::checkpoint {

/// Writes entries one behind the other, the data of each at a multiple of 64 bytes, as PyTorch's
/// own archives have it, so that they can be mapped. Entries and archives of more than 4 GiB have
/// the wider numbers of zip64. Layout as in zip_archive.h; equal entries give equal bytes.
class ZipWriter {
 public:
  /// Begins an archive at the start of an empty file, which must outlive this.
  explicit ZipWriter(io::File& file);
  /// Begins an archive in memory, at the end of an empty text, which must outlive this.
  explicit ZipWriter(std::string& memory);
  /// Begins an archive whose bytes `write` gets, in order.
  explicit ZipWriter(std::function<void(std::string_view)> write) : write_(std::move(write)) {}
  /// Adds an entry. Throws IoError.
  void add(const std::string& name, std::span<const std::byte> data);
  /// Adds an entry of text. Throws IoError.
  void add(const std::string& name, std::string_view text) {
    add(name, std::as_bytes(std::span(text.data(), text.size())));
  }
  /// Writes the directory, after which nothing may be added. Throws IoError.
  void finish();

 private:
  struct Entry {
    std::string name;
    uint32_t crc = 0;
    uint64_t bytes = 0, start = 0;
  };
  void write(std::string_view bytes);

  std::function<void(std::string_view)> write_;
  uint64_t at_ = 0;  // bytes written
  std::vector<Entry> entries_;
};

}  // namespace tare::checkpoint
