// Writes local headers, data, the directory and its end.
#include "tare/checkpoint/zip_writer.h"

#include <zlib.h>

#include <algorithm>
#include <concepts>
#include <limits>

namespace tare::checkpoint {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50,
                   kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr uint16_t kVersion = 20, kVersion64 = 45, kUtf8 = 0x800, kStored = 0;
constexpr uint16_t kExtra64 = 1, kPadding = 0x4246;  // "FB"
constexpr uint16_t kDate = 0x0021;                   // 1980-01-01
constexpr uint64_t kAlignment = 64;
constexpr uint32_t kWide = std::numeric_limits<uint32_t>::max();  // the number is in zip64's field

uint32_t narrow(uint64_t value) { return value < kWide ? static_cast<uint32_t>(value) : kWide; }

/// Collects little-endian numbers.
class Record {
 public:
  Record& u16(uint16_t value) { return number(value); }
  Record& u32(uint32_t value) { return number(value); }
  Record& u64(uint64_t value) { return number(value); }
  Record& text(std::string_view value) {
    bytes_ += value;
    return *this;
  }
  /// Adds what a local header and the directory say of an entry's content.
  Record& content(uint32_t crc, uint64_t size) {
    return u16(kUtf8).u16(kStored).u16(0).u16(kDate).u32(crc).u32(narrow(size)).u32(narrow(size));
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  template <std::unsigned_integral Number>
  Record& number(Number value) {
    for (size_t i = 0; i < sizeof value; ++i)
      bytes_ += static_cast<char>((static_cast<uint64_t>(value) >> (8 * i)) & 0xff);
    return *this;
  }
  std::string bytes_;
};

uint32_t crc_of(std::span<const std::byte> data) {
  uLong crc = crc32(0, nullptr, 0);
  for (size_t at = 0; at < data.size();) {
    const size_t count = std::min<size_t>(data.size() - at, size_t{1} << 30);
    crc = crc32(crc, reinterpret_cast<const Bytef*>(data.data() + at), static_cast<uInt>(count));
    at += count;
  }
  return static_cast<uint32_t>(crc);
}

}  // namespace

ZipWriter::ZipWriter(io::File& file)
    : write_([&file](std::string_view bytes) { file.write(bytes); }) {}

ZipWriter::ZipWriter(std::string& memory)
    : write_([&memory](std::string_view bytes) { memory += bytes; }) {}

void ZipWriter::write(std::string_view bytes) {
  write_(bytes);
  at_ += bytes.size();
}

void ZipWriter::add(const std::string& name, std::span<const std::byte> data) {
  const Entry entry{.name = name, .crc = crc_of(data), .bytes = data.size(), .start = at_};
  const bool wide = entry.bytes >= kWide;
  Record extra;
  if (wide) extra.u16(kExtra64).u16(16).u64(entry.bytes).u64(entry.bytes);
  constexpr uint64_t kHeader = 30, kField = 4;
  const uint64_t unpadded = at_ + kHeader + name.size() + extra.bytes().size() + kField;
  const uint64_t padding = (kAlignment - unpadded % kAlignment) % kAlignment;
  extra.u16(kPadding).u16(static_cast<uint16_t>(padding)).text(std::string(padding, 'Z'));
  write(Record()
            .u32(kLocal)
            .u16(wide ? kVersion64 : kVersion)
            .content(entry.crc, entry.bytes)
            .u16(static_cast<uint16_t>(name.size()))
            .u16(static_cast<uint16_t>(extra.bytes().size()))
            .text(name)
            .text(extra.bytes())
            .bytes());
  write({reinterpret_cast<const char*>(data.data()), data.size()});
  entries_.push_back(entry);
}

void ZipWriter::finish() {
  const uint64_t start = at_;
  for (const Entry& entry : entries_) {
    Record wide;
    if (entry.bytes >= kWide) wide.u64(entry.bytes).u64(entry.bytes);
    if (entry.start >= kWide) wide.u64(entry.start);
    Record extra;
    if (!wide.bytes().empty())
      extra.u16(kExtra64).u16(static_cast<uint16_t>(wide.bytes().size())).text(wide.bytes());
    const uint16_t version = extra.bytes().empty() ? kVersion : kVersion64;
    write(Record()
              .u32(kCentral)
              .u16(version)
              .u16(version)
              .content(entry.crc, entry.bytes)
              .u16(static_cast<uint16_t>(entry.name.size()))
              .u16(static_cast<uint16_t>(extra.bytes().size()))
              .u16(0)
              .u16(0)
              .u16(0)
              .u32(0)
              .u32(narrow(entry.start))
              .text(entry.name)
              .text(extra.bytes())
              .bytes());
  }
  const uint64_t end = at_, count = entries_.size();
  constexpr uint64_t kManyEntries = 0xffff;
  if (start >= kWide || count >= kManyEntries) {
    write(Record()
              .u32(kEnd64)
              .u64(44)
              .u16(kVersion64)
              .u16(kVersion64)
              .u32(0)
              .u32(0)
              .u64(count)
              .u64(count)
              .u64(end - start)
              .u64(start)
              .bytes());
    write(Record().u32(kLocator64).u32(0).u64(end).u32(1).bytes());
  }
  const auto few = static_cast<uint16_t>(std::min(count, kManyEntries));
  write(Record()
            .u32(kEnd)
            .u16(0)
            .u16(0)
            .u16(few)
            .u16(few)
            .u32(narrow(end - start))
            .u32(narrow(start))
            .u16(0)
            .bytes());
}

}  // namespace tare::checkpoint
