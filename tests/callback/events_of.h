// Reads event files of TensorBoard, independently of the code that writes them.
#pragma once

#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tare/data/protobuf.h"
#include "tare/data/tfrecord.h"

namespace tare::testing {

/// What an event says of one tag.
struct SeenValue {
  int64_t step = 0;
  double value = 0;              // of a scalar
  std::vector<double> limits{};  // of a histogram
  std::vector<double> counts{};
  friend bool operator==(const SeenValue&, const SeenValue&) = default;
};

template <class T>
T number_in(std::string_view bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

inline std::vector<double> numbers_in(std::string_view bytes) {
  std::vector<double> all;
  for (size_t i = 0; i < bytes.size(); i += 8) all.push_back(number_in<double>(bytes.substr(i, 8)));
  return all;
}

/// The values of an event file by tag, in the order of the file; "" has one value a version.
inline std::map<std::string, std::vector<SeenValue>> events_of(const std::filesystem::path& path) {
  std::map<std::string, std::vector<SeenValue>> all;
  TfRecordReader records(path);
  const std::string file = path.string();
  while (const auto record = records.next()) {
    ProtobufReader event(*record, "test", file);
    int64_t step = 0;
    while (const auto field = event.next()) {
      if (field->number == 2) step = static_cast<int64_t>(field->value);
      if (field->number == 3) all[""].push_back({.step = step});
      if (field->number != 5) continue;
      ProtobufReader summary = event.below(*field, "summary");
      while (const auto entry = summary.next()) {
        ProtobufReader value = summary.below(*entry, "value");
        std::string tag;
        SeenValue seen{.step = step};
        while (const auto part = value.next()) {
          if (part->number == 1) tag = part->bytes;
          if (part->number == 2) seen.value = static_cast<double>(number_in<float>(part->bytes));
          if (part->number != 5) continue;
          ProtobufReader histogram = value.below(*part, "histo");
          while (const auto one = histogram.next()) {
            if (one->number == 6) seen.limits = numbers_in(one->bytes);
            if (one->number == 7) seen.counts = numbers_in(one->bytes);
          }
        }
        all[tag].push_back(seen);
      }
    }
  }
  return all;
}

inline std::vector<int64_t> steps_of(const std::vector<SeenValue>& values) {
  std::vector<int64_t> steps;
  for (const auto& value : values) steps.push_back(value.step);
  return steps;
}

}  // namespace tare::testing
