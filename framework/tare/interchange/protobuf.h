// Writes messages in the wire format of Protocol Buffers. Internal.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace tare::interchange {

/// Collects the fields of a message, in the order in which they are added.
/// Format: https://protobuf.dev/programming-guides/encoding
class Message {
 public:
  /// Adds a whole number; a negative one takes ten bytes.
  Message& number(uint32_t field, int64_t value) {
    tag(field, 0);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  /// Adds a float32.
  Message& real(uint32_t field, float value) {
    tag(field, 5);
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int i = 0; i < 4; ++i) bytes_ += static_cast<char>((bits >> (8 * i)) & 0xff);
    return *this;
  }
  /// Adds text, or bytes.
  Message& text(uint32_t field, std::string_view value) {
    begin(field, value.size());
    bytes_ += value;
    return *this;
  }
  /// Adds a message.
  Message& message(uint32_t field, const Message& value) { return text(field, value.bytes()); }
  /// Adds the head of a field of so many bytes, which the caller writes behind what is here.
  Message& begin(uint32_t field, uint64_t bytes) {
    tag(field, 2);
    varint(bytes);
    return *this;
  }
  /// Returns the bytes so far.
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  void tag(uint32_t field, uint32_t type) { varint(field << 3 | type); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7f) | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

}  // namespace tare::interchange
