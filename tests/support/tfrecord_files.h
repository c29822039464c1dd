// Writes TFRecord files of tf.train.Example.
#pragma once

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "tare/data/tfrecord.h"

namespace tare::testing {

inline std::string varint(uint64_t value) {
  std::string text;
  for (; value >= 128; value >>= 7) text += static_cast<char>(value | 128);
  return text + static_cast<char>(value);
}

/// A field that has a length: a text, or a message.
inline std::string protobuf_field(uint64_t number, std::string_view bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}

inline std::string bytes_feature(std::string_view bytes) {
  return protobuf_field(1, protobuf_field(1, bytes));
}
inline std::string ints_feature(const std::vector<int64_t>& values) {
  std::string packed;
  for (const int64_t value : values) packed += varint(static_cast<uint64_t>(value));
  return protobuf_field(3, protobuf_field(1, packed));
}
inline std::string floats_feature(const std::vector<float>& values) {
  const std::string_view packed(reinterpret_cast<const char*>(values.data()), 4 * values.size());
  return protobuf_field(2, protobuf_field(1, packed));
}

struct NamedFeature {
  std::string name, feature;
};

/// The bytes of tf.train.Example.
inline std::string example_of(const std::vector<NamedFeature>& features) {
  std::string all;
  for (const auto& [name, feature] : features)
    all += protobuf_field(1, protobuf_field(1, name) + protobuf_field(2, feature));
  return protobuf_field(1, all);
}

/// The bytes of a record.
inline std::string tf_record(std::string_view bytes) {
  const auto number = [](auto value) {
    std::string text(sizeof value, '\0');
    std::memcpy(text.data(), &value, sizeof value);
    return text;
  };
  const std::string length = number(static_cast<uint64_t>(bytes.size()));
  return length + number(masked_crc32c(length)) + std::string(bytes) + number(masked_crc32c(bytes));
}

inline void write_tf_records(const std::filesystem::path& path,
                             const std::vector<std::string>& examples) {
  std::ofstream file(path, std::ios::binary);
  for (const auto& example : examples) file << tf_record(example);
}

}  // namespace tare::testing
