// Reads and writes varints, fields and packed lists of Protocol Buffers.
#include "tare/data/protobuf.h"

#include <bit>
#include <cstring>

#include "tare/base/error.h"

namespace tare {

void ProtobufReader::refuse(const char* part, const char* problem) const {
  throw FormatError(operation_, *file_, part, problem);
}

uint64_t ProtobufReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (left_.empty()) refuse("a number", "ends too early");
    const auto byte = static_cast<unsigned char>(left_.front());
    left_.remove_prefix(1);
    if (shift == 63 && byte > 1) break;
    value |= uint64_t{byte & 0x7fU} << shift;
    if ((byte & 0x80) == 0) return value;
  }
  refuse("a number", "has more than 64 bits");
}

std::string_view ProtobufReader::take(uint64_t size) {
  if (size > left_.size()) refuse("a field", "is longer than its message");
  const std::string_view bytes = left_.substr(0, static_cast<size_t>(size));
  left_.remove_prefix(bytes.size());
  return bytes;
}

std::optional<ProtobufField> ProtobufReader::next() {
  if (left_.empty()) return std::nullopt;
  const uint64_t key = varint();
  ProtobufField field{.number = key >> 3, .wire_type = static_cast<int>(key & 7)};
  if (field.number == 0) refuse("a field", "has the number 0");
  switch (field.wire_type) {
    case 0:
      field.value = varint();
      break;
    case 1:
      field.bytes = take(8);
      break;
    case 2:
      field.bytes = take(varint());
      break;
    case 5:
      field.bytes = take(4);
      break;
    default:  // groups, which nothing here has, and what there is not
      refuse("a field", "has a wire type that is not read");
  }
  return field;
}

std::string_view ProtobufReader::bytes_of(const ProtobufField& field, const char* part) const {
  if (field.wire_type != 2) refuse(part, "has another wire type");
  return field.bytes;
}

ProtobufReader ProtobufReader::below(const ProtobufField& field, const char* part) const {
  return {bytes_of(field, part), operation_, *file_};
}

void ProtobufReader::add_floats(const ProtobufField& field, std::vector<float>& values,
                                const char* part) const {
  if (field.wire_type != 2 && field.wire_type != 5) refuse(part, "has another wire type");
  if (field.bytes.size() % sizeof(float) != 0) refuse(part, "is cut");
  const size_t before = values.size();
  values.resize(before + field.bytes.size() / sizeof(float));
  if (!field.bytes.empty())
    std::memcpy(values.data() + before, field.bytes.data(), field.bytes.size());
}

void ProtobufReader::add_integers(const ProtobufField& field, std::vector<int64_t>& values,
                                  const char* part) const {
  if (field.wire_type == 0) {
    values.push_back(static_cast<int64_t>(field.value));
    return;
  }
  ProtobufReader packed = below(field, part);
  while (!packed.left_.empty()) values.push_back(static_cast<int64_t>(packed.varint()));
}

namespace {

/// Adds the bytes of a number, little-endian as the machines for which LibTorch is built.
template <class T>
void add_bytes(std::string& text, const T& value) {
  static_assert(std::endian::native == std::endian::little);
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

void ProtobufWriter::varint(uint64_t value) {
  for (; value > 0x7f; value >>= 7) text_ += static_cast<char>((value & 0x7f) | 0x80);
  text_ += static_cast<char>(value);
}

ProtobufWriter& ProtobufWriter::integer(uint64_t number, int64_t value) {
  key(number, 0);
  varint(static_cast<uint64_t>(value));
  return *this;
}

ProtobufWriter& ProtobufWriter::real(uint64_t number, double value) {
  key(number, 1);
  add_bytes(text_, value);
  return *this;
}

ProtobufWriter& ProtobufWriter::real(uint64_t number, float value) {
  key(number, 5);
  add_bytes(text_, value);
  return *this;
}

ProtobufWriter& ProtobufWriter::bytes(uint64_t number, std::string_view value) {
  begin(number, value.size());
  text_ += value;
  return *this;
}

ProtobufWriter& ProtobufWriter::begin(uint64_t number, uint64_t size) {
  key(number, 2);
  varint(size);
  return *this;
}

ProtobufWriter& ProtobufWriter::reals(uint64_t number, std::span<const double> values) {
  key(number, 2);
  varint(values.size_bytes());
  for (const double value : values) add_bytes(text_, value);
  return *this;
}

}  // namespace tare
