// Reads the directory of a zip archive and refuses whatever does not lie inside of the file.
#include "tare/checkpoint/zip_archive.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "tare/base/error.h"

namespace tare::checkpoint {
namespace {

constexpr const char* kOperation = "torch_file.open";
constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50,
                   kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr uint64_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56,
                   kLocator64Bytes = 20, kLongestComment = 65535;
constexpr uint16_t kExtra64 = 1;

using Bytes = std::span<std::byte>;

template <class Number>
Number number_at(std::span<const std::byte> bytes, uint64_t place) {
  static_assert(std::is_unsigned_v<Number>);
  Number value = 0;
  for (size_t i = sizeof value; i-- > 0;)
    value = static_cast<Number>(static_cast<uint64_t>(value) << 8 |
                                std::to_integer<uint64_t>(bytes[place + i]));
  return value;
}

struct Directory {
  uint64_t entries = 0, bytes = 0, start = 0;
};

struct Entry {
  std::string name;
  uint64_t stored_bytes = 0, bytes = 0, start = 0;
  uint16_t flags = 0, method = 0;
};

/// Reads one archive.
class Reader {
 public:
  Reader(Bytes file, const std::filesystem::path& path) : file_(file), path_(path.string()) {}

  ZipEntries read() {
    const Directory directory = find_directory();
    ZipEntries entries;
    uint64_t at = directory.start;
    const uint64_t end = directory.start + directory.bytes;
    for (uint64_t i = 0; i < directory.entries; ++i) {
      const Entry entry = read_entry(at, end);
      if (!entries.emplace(entry.name, data_of(entry)).second) fail(entry.name, "is given twice");
    }
    return entries;
  }

 private:
  [[noreturn]] void fail(const std::string& part, std::string_view problem) const {
    throw FormatError(kOperation, path_, printable(part), problem);
  }
  [[noreturn]] void fail_directory() const {
    fail("archive", "has a damaged directory; the file is truncated or damaged");
  }

  [[nodiscard]] bool holds(uint64_t place, uint64_t bytes) const {
    return place <= file_.size() && bytes <= file_.size() - place;
  }

  /// Returns the place of the end record, behind which is nothing but its comment.
  [[nodiscard]] uint64_t find_end() const {
    const uint64_t size = file_.size();
    for (uint64_t comment = 0; comment <= kLongestComment && kEndBytes + comment <= size;
         ++comment) {
      const uint64_t at = size - kEndBytes - comment;
      if (number_at<uint32_t>(file_, at) == kEnd && number_at<uint16_t>(file_, at + 20) == comment)
        return at;
    }
    fail("archive", "has no directory at its end; the file is truncated or damaged");
  }

  [[nodiscard]] Directory find_directory() const {
    const uint64_t end = find_end();
    Directory found{.entries = number_at<uint16_t>(file_, end + 10),
                    .bytes = number_at<uint32_t>(file_, end + 12),
                    .start = number_at<uint32_t>(file_, end + 16)};
    if (end >= kLocator64Bytes && number_at<uint32_t>(file_, end - kLocator64Bytes) == kLocator64)
      found = wide_directory(number_at<uint64_t>(file_, end - kLocator64Bytes + 8));
    if (!holds(found.start, found.bytes) || found.entries > found.bytes / kCentralBytes)
      fail_directory();
    return found;
  }

  [[nodiscard]] Directory wide_directory(uint64_t at) const {
    if (!holds(at, kEnd64Bytes) || number_at<uint32_t>(file_, at) != kEnd64) fail_directory();
    return {.entries = number_at<uint64_t>(file_, at + 32),
            .bytes = number_at<uint64_t>(file_, at + 40),
            .start = number_at<uint64_t>(file_, at + 48)};
  }

  /// Reads the entry at `at` of the directory, and moves `at` behind it.
  [[nodiscard]] Entry read_entry(uint64_t& at, uint64_t end) const {
    if (end - at < kCentralBytes || number_at<uint32_t>(file_, at) != kCentral) fail_directory();
    const uint64_t name = number_at<uint16_t>(file_, at + 28),
                   extra = number_at<uint16_t>(file_, at + 30),
                   comment = number_at<uint16_t>(file_, at + 32);
    if (end - at - kCentralBytes < name + extra + comment) fail_directory();
    const auto* text = reinterpret_cast<const char*>(file_.data()) + at + kCentralBytes;
    Entry entry{.name = std::string(text, name),
                .stored_bytes = number_at<uint32_t>(file_, at + 20),
                .bytes = number_at<uint32_t>(file_, at + 24),
                .start = number_at<uint32_t>(file_, at + 42),
                .flags = number_at<uint16_t>(file_, at + 8),
                .method = number_at<uint16_t>(file_, at + 10)};
    widen(entry, file_.subspan(at + kCentralBytes + name, extra));
    at += kCentralBytes + name + extra + comment;
    return entry;
  }

  /// Takes the numbers that do not fit into 32 bits from the extra fields.
  void widen(Entry& entry, std::span<const std::byte> extra) const {
    while (extra.size() >= 4) {
      const auto kind = number_at<uint16_t>(extra, 0);
      const size_t bytes = number_at<uint16_t>(extra, 2);
      if (bytes > extra.size() - 4) fail(entry.name, "has damaged fields in the directory");
      auto field = extra.subspan(4, bytes);
      extra = extra.subspan(4 + bytes);
      if (kind != kExtra64) continue;
      for (uint64_t* value : {&entry.bytes, &entry.stored_bytes, &entry.start}) {
        if (*value != UINT32_MAX) continue;
        if (field.size() < 8) fail(entry.name, "has damaged fields in the directory");
        *value = number_at<uint64_t>(field, 0);
        field = field.subspan(8);
      }
    }
  }

  /// Returns the bytes behind the local header, whose name may have other extra fields.
  [[nodiscard]] Bytes data_of(const Entry& entry) const {
    if ((entry.flags & 1) != 0) fail(entry.name, "is encrypted, which is not read");
    if (entry.method != 0 || entry.stored_bytes != entry.bytes)
      fail(entry.name, "is compressed, which is not read; torch.save stores without compression");
    if (!holds(entry.start, kLocalBytes) || number_at<uint32_t>(file_, entry.start) != kLocal)
      fail(entry.name, "does not begin where the directory says; the file is damaged");
    const uint64_t names = uint64_t{number_at<uint16_t>(file_, entry.start + 26)} +
                           number_at<uint16_t>(file_, entry.start + 28);
    const uint64_t start = entry.start + kLocalBytes + names;
    if (!holds(start, entry.bytes))
      fail(entry.name, "ends behind the end of the file; the file is truncated");
    return file_.subspan(start, entry.bytes);
  }

  Bytes file_;
  std::string path_;
};

}  // namespace

bool is_zip(std::span<const std::byte> file) {
  if (file.size() < 4) return false;
  const auto first = number_at<uint32_t>(file, 0);
  return first == kLocal || first == kEnd;  // of an archive without entries
}

ZipEntries read_zip(std::span<std::byte> file, const std::filesystem::path& path) {
  return Reader(file, path).read();
}

}  // namespace tare::checkpoint
