// Reads TFRecord files, checks their checksums, and parses their examples.
#include "tare/data/tfrecord.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <exception>
#include <thread>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/base/log.h"
#include "tare/data/byte_source.h"
#include "tare/data/gather.h"
#include "tare/data/protobuf.h"

namespace tare {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRead = "data.tfrecord";

constexpr std::array<uint32_t, 256> crc_table() {
  constexpr uint32_t kPolynomial = 0x82f63b78;  // of CRC-32C, its lowest bit first
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1 ^ ((value & 1) != 0 ? kPolynomial : 0);
    table[i] = value;
  }
  return table;
}

/// Reads a little-endian number, as the machines store it for which LibTorch is built.
template <class T>
T number_of(std::string_view bytes) {
  static_assert(std::endian::native == std::endian::little);
  T value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

TfFeature parse_feature(ProtobufReader message) {
  TfFeature feature;
  while (const auto field = message.next()) {
    if (field->number < 1 || field->number > 3) continue;
    ProtobufReader list = message.below(*field, "Feature");
    // A list replaces one of another kind, as in every "oneof".
    if (field->number != 1) feature.bytes.clear();
    if (field->number != 2) feature.floats.clear();
    if (field->number != 3) feature.ints.clear();
    while (const auto value = list.next()) {
      if (value->number != 1) continue;
      if (field->number == 1) feature.bytes.emplace_back(list.bytes_of(*value, "BytesList.value"));
      if (field->number == 2) list.add_floats(*value, feature.floats, "FloatList.value");
      if (field->number == 3) list.add_integers(*value, feature.ints, "Int64List.value");
    }
  }
  return feature;
}

[[noreturn]] void refuse_feature(const std::string& name, const char* problem) {
  throw ConfigError("data.tfrecord", "feature '" + printable(name) + "'", problem, {}, {});
}

/// Returns the message of an error without the operation in front.
std::string cause_of(const Error& error) {
  const std::string text = error.what();
  const size_t end = text.find("] ");
  return text.starts_with('[') && end != std::string::npos ? text.substr(end + 2) : text;
}

/// Reads one sample; errors name its place.
Batch read_sample(const std::string& record, const std::function<Batch(const TfExample&)>& sample,
                  const fs::path& file, size_t number) {
  const std::string part = "record " + std::to_string(number);
  try {
    return sample(parse_tf_example(record, file.string() + ": " + part));
  } catch (const ConfigError& error) {
    throw FormatError(kRead, file.string(), part, cause_of(error));
  } catch (const FormatError& error) {
    if (error.path().starts_with(file.string())) throw;
    throw FormatError(kRead, file.string(), part, cause_of(error));
  }
}

/// Reads the samples of one file.
Batch read_file(const fs::path& file, const std::function<Batch(const TfExample&)>& sample,
                int64_t limit_bytes) {
  const c10::NoGradGuard no_grad;
  TfRecordReader records(file, limit_bytes);
  std::vector<Batch> samples;
  while (const auto record = records.next()) {
    Batch one = read_sample(*record, sample, file, samples.size());
    if (!one.input().defined() || (!samples.empty() && !same_layout(one, samples.front())))
      throw ShapeError(kRead, "samples of one shape and type",
                       "another in record " + std::to_string(samples.size()) + " of " +
                           printable(file.string()));
    samples.push_back(std::move(one));
  }
  if (samples.empty()) return {};
  return joined(std::move(samples), [](const auto& all) { return at::stack(all); });
}

/// Calls `work(i)` for i below `count` by so many threads, and throws what the lowest i has thrown.
void for_each(size_t count, int64_t threads, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next = 0;
  std::vector<std::exception_ptr> errors(count);
  const auto loop = [&] {
    for (size_t i = next++; i < count; i = next++) try {
        work(i);
      } catch (...) {
        errors[i] = std::current_exception();
      }
  };
  {
    std::vector<std::jthread> others;
    const size_t most = std::min(count, static_cast<size_t>(threads));
    for (size_t i = 1; i < most; ++i) others.emplace_back(loop);
    loop();
  }
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr auto kTable = crc_table();
  uint32_t value = ~uint32_t{0};
  for (const char byte : bytes)
    value = value >> 8 ^ kTable[(value ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~value;
}

uint32_t masked_crc32c(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xa282ead8U;
}

std::string framed_record(std::string_view bytes) {
  static_assert(std::endian::native == std::endian::little);
  std::string record;
  record.reserve(bytes.size() + 16);
  const auto add = [&record](const auto& number) {
    record.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  add(uint64_t{bytes.size()});
  add(masked_crc32c(record));  // of the length
  record += bytes;
  add(masked_crc32c(bytes));
  return record;
}

struct TfRecordReader::Parts {
  Parts(const fs::path& path, int64_t limit) : source(path, kRead), limit_bytes(limit) {}

  [[noreturn]] void refuse(std::string_view problem) const {
    source.refuse("record " + std::to_string(records), problem);
  }

  /// Reads the length of the next record; unset at the end of the file.
  std::optional<uint64_t> length() {
    std::array<char, 12> head{};
    const size_t size = source.take(reinterpret_cast<uint8_t*>(head.data()), head.size());
    if (size == 0) {
      source.expect_end();
      return std::nullopt;
    }
    if (size < head.size()) refuse("the file ends inside its length");
    const std::string_view bytes(head.data(), head.size());
    if (number_of<uint32_t>(bytes.substr(8)) != masked_crc32c(bytes.substr(0, 8)))
      refuse("the checksum of its length is wrong");
    return number_of<uint64_t>(bytes);
  }

  /// Reads while bytes come: a length that a compressed file does not hold allocates little.
  std::string take(uint64_t length) {
    constexpr uint64_t kPiece = uint64_t{1} << 20;
    std::string bytes;
    while (bytes.size() < length) {
      const size_t before = bytes.size();
      const auto piece = static_cast<size_t>(std::min(kPiece, length - before));
      bytes.resize(before + piece);
      if (source.take(reinterpret_cast<uint8_t*>(bytes.data() + before), piece) != piece)
        refuse("the file ends inside its bytes");
    }
    return bytes;
  }

  ByteSource source;
  int64_t limit_bytes;
  int64_t records = 0;  // read so far
};

TfRecordReader::TfRecordReader(const fs::path& path, int64_t limit_bytes)
    : parts_(std::make_unique<Parts>(path, limit_bytes)) {}

TfRecordReader::~TfRecordReader() = default;

std::optional<std::string> TfRecordReader::next() {
  const auto length = parts_->length();
  if (!length) return std::nullopt;
  const auto stored = static_cast<uint64_t>(parts_->source.file_size());
  if (*length > static_cast<uint64_t>(parts_->limit_bytes))
    parts_->refuse("its length is above the limit of " + format_bytes(parts_->limit_bytes));
  if (!parts_->source.gzip() && *length > stored)
    parts_->refuse("its length is above that of the file");
  std::string bytes = parts_->take(*length);
  std::array<char, 4> sum{};
  if (parts_->source.take(reinterpret_cast<uint8_t*>(sum.data()), sum.size()) != sum.size())
    parts_->refuse("the file ends inside its checksum");
  if (number_of<uint32_t>({sum.data(), sum.size()}) != masked_crc32c(bytes))
    parts_->refuse("the checksum of its bytes is wrong");
  ++parts_->records;
  return bytes;
}

const TfFeature& TfExample::feature(const std::string& name) const {
  const auto found = features_.find(name);
  if (found != features_.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, value] : features_) names.push_back(known);
  throw ConfigError("data.tfrecord", "feature '" + printable(name) + "'",
                    "is not in the example" + did_you_mean(name, names), listed(names), {});
}

const std::string& TfExample::bytes(const std::string& name) const {
  const TfFeature& all = feature(name);
  if (all.bytes.size() != 1) refuse_feature(name, "is not one text of bytes");
  return all.bytes.front();
}

int64_t TfExample::integer(const std::string& name) const {
  const TfFeature& all = feature(name);
  if (all.ints.size() != 1) refuse_feature(name, "is not one integer");
  return all.ints.front();
}

at::Tensor TfExample::tensor(const std::string& name, const std::vector<int64_t>& shape) const {
  const TfFeature& all = feature(name);
  const size_t count = all.floats.empty() ? all.ints.size() : all.floats.size();
  at::Tensor values = at::empty(shape, at::kFloat);
  if (count != static_cast<size_t>(values.numel()))
    refuse_feature(name, "does not have as many numbers as the shape");
  auto* out = values.mutable_data_ptr<float>();
  if (!all.floats.empty()) std::ranges::copy(all.floats, out);
  std::ranges::transform(all.ints, out, [](int64_t value) { return static_cast<float>(value); });
  return values;
}

TfExample parse_tf_example(std::string_view record, const std::string& file) {
  std::map<std::string, TfFeature> features;
  ProtobufReader example(record, kRead, file);
  while (const auto field = example.next()) {
    if (field->number != 1) continue;
    ProtobufReader all = example.below(*field, "Example.features");
    while (const auto entry = all.next()) {
      if (entry->number != 1) continue;
      ProtobufReader pair = all.below(*entry, "Features.feature");
      std::string name;
      TfFeature feature;
      while (const auto part = pair.next()) {
        if (part->number == 1) name = pair.bytes_of(*part, "the name of a feature");
        if (part->number == 2) feature = parse_feature(pair.below(*part, "Feature"));
      }
      features.insert_or_assign(std::move(name), std::move(feature));
    }
  }
  return TfExample(std::move(features));
}

Batch read_tfrecords(const std::vector<fs::path>& files,
                     const std::function<Batch(const TfExample&)>& sample,
                     const TfRecordOptions& options) {
  if (options.parallel_reads < 1)
    throw ConfigError(kRead, "parallel_reads", "must be >= 1", "",
                      std::to_string(options.parallel_reads));
  std::vector<Batch> parts(files.size());
  for_each(files.size(), options.parallel_reads,
           [&](size_t i) { parts[i] = read_file(files[i], sample, options.limit_bytes); });
  std::vector<Batch> read;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].input().defined()) {
      log::warning("[" + std::string(kRead) + "] '" + printable(files[i].string()) +
                   "' holds no record");
      continue;
    }
    read.push_back(std::move(parts[i]));
    if (read.back().targets.size() != read.front().targets.size())
      throw ShapeError(kRead, "a target for every sample", "none in one of the files");
    if (!same_layout(read.back(), read.front(), 1))
      throw ShapeError(kRead, "samples of one shape and type",
                       "others in " + printable(files[i].string()));
  }
  if (read.empty())
    throw ConfigError(kRead, "there is no record in " + std::to_string(files.size()) + " files");
  return joined(std::move(read), [](const auto& all) { return at::cat(all); });
}

DatasetPtr tfrecord_dataset(const std::vector<fs::path>& files,
                            const std::function<Batch(const TfExample&)>& sample,
                            const TfRecordOptions& options) {
  const Batch all = read_tfrecords(files, sample, options);
  return tensor_dataset(all.inputs, all.targets);
}

}  // namespace tare
