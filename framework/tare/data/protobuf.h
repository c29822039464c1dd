// ProtobufReader and ProtobufWriter: the fields of a message of Protocol Buffers, in the wire
// format of https://protobuf.dev/programming-guides/encoding. Internal.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tare {

/// Holds one field as it stands in the message.
struct ProtobufField {
  uint64_t number = 0;
  int wire_type = 0;         ///< 0 varint, 1 eight bytes, 2 a length and bytes, 5 four bytes
  uint64_t value = 0;        ///< of a varint
  std::string_view bytes{};  ///< of the others, within the message
};

/// Reads a message, which must outlive it. Every call throws FormatError(operation, file), naming
/// the part, for bytes that break the format; it reads nothing behind them and allocates nothing
/// that they do not pay for.
class ProtobufReader {
 public:
  ProtobufReader(std::string_view message, const char* operation, const std::string& file)
      : left_(message), operation_(operation), file_(&file) {}

  /// Returns the next field; unset at the end.
  [[nodiscard]] std::optional<ProtobufField> next();
  /// Returns the fields of a message that is a field of this message.
  [[nodiscard]] ProtobufReader below(const ProtobufField& field, const char* part) const;
  [[nodiscard]] std::string_view bytes_of(const ProtobufField& field, const char* part) const;
  /// Adds the values of a repeated field, packed or one by one.
  void add_floats(const ProtobufField& field, std::vector<float>& values, const char* part) const;
  void add_integers(const ProtobufField& field, std::vector<int64_t>& values,
                    const char* part) const;

 private:
  [[noreturn]] void refuse(const char* part, const char* problem) const;
  uint64_t varint();
  std::string_view take(uint64_t size);

  std::string_view left_;
  const char* operation_;
  const std::string* file_;
};

/// Writes the fields of a message one after the other. A value; each call returns the writer.
class ProtobufWriter {
 public:
  /// Adds a varint; a negative value takes ten bytes, as an int64 of Protocol Buffers does.
  ProtobufWriter& integer(uint64_t number, int64_t value);
  /// Adds a double, in eight bytes.
  ProtobufWriter& real(uint64_t number, double value);
  /// Adds a float, in four bytes.
  ProtobufWriter& real(uint64_t number, float value);
  /// Adds a text, bytes or the text of another message.
  ProtobufWriter& bytes(uint64_t number, std::string_view value);
  /// Adds a message.
  ProtobufWriter& message(uint64_t number, const ProtobufWriter& message) {
    return bytes(number, message.text());
  }
  /// Adds the head of a field of so many bytes, which the caller writes behind what is here.
  ProtobufWriter& begin(uint64_t number, uint64_t size);
  /// Adds a repeated double, packed.
  ProtobufWriter& reals(uint64_t number, std::span<const double> values);
  /// Returns the bytes of the message so far.
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  void key(uint64_t number, uint64_t wire_type) { varint(number << 3 | wire_type); }
  void varint(uint64_t value);

  std::string text_;
};

}  // namespace tare
