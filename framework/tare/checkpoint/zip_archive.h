// Finds the entries of a zip archive that are stored without compression.
//
// Layout (PKWARE, APPNOTE.TXT 6.3.10): entries one after the other, each behind a local header;
// then the central directory, which lists them; then the end record, in front of which an archive
// with zip64 has a second one of wider numbers. All numbers are little-endian.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <unordered_map>

namespace tare::checkpoint {

/// Holds the bytes of each entry by its name; they are part of the archive's bytes.
using ZipEntries = std::unordered_map<std::string, std::span<std::byte>>;

/// Whether the file begins as a zip archive with an entry does.
[[nodiscard]] bool is_zip(std::span<const std::byte> file);

/// Reads the central directory of an archive; `file` is its whole content, `path` is for messages.
/// The checksums of the entries are not compared. Throws FormatError, naming the entry, for an
/// entry that is compressed, encrypted, given twice or not inside of the file, and for a directory
/// that is damaged.
[[nodiscard]] ZipEntries read_zip(std::span<std::byte> file, const std::filesystem::path& path);

}  // namespace tare::checkpoint
