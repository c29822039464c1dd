// TFRecord files: TensorFlow's records with checksums, and tf.train.Example in them.
//
// A record is its length (uint64, little-endian), a masked CRC-32C of the length, the bytes, and a
// masked CRC-32C of the bytes (tensorflow/core/lib/io/record_writer.h). The fields of Example are
// those of tensorflow/core/example/example.proto and feature.proto.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tare/data/dataset.h"

namespace tare {

inline constexpr int64_t kMaxTfRecordBytes = int64_t{256} << 20;  ///< of one record

/// Returns CRC-32C (Castagnoli) of the bytes.
[[nodiscard]] uint32_t crc32c(std::string_view bytes);
/// Computes a checksum as TFRecord files store it: rotated right by 15 bits, plus 0xa282ead8.
[[nodiscard]] uint32_t masked_crc32c(std::string_view bytes);

/// Returns a record as it stands in a file: the bytes with their length and both checksums.
[[nodiscard]] std::string framed_record(std::string_view bytes);

/// Reads the records of a file in order; gzip is recognised by its content. Not thread-safe.
class TfRecordReader {
 public:
  /// Throws IoError.
  explicit TfRecordReader(const std::filesystem::path& path,
                          int64_t limit_bytes = kMaxTfRecordBytes);
  ~TfRecordReader();
  /// Returns the next record; unset at the end of the file. Nothing is allocated for a length that
  /// exceeds the limit or the file, or whose checksum is wrong. Throws FormatError, naming path and
  /// record, for that, for a wrong checksum of the bytes, and for a file or gzip stream that is
  /// cut; IoError.
  [[nodiscard]] std::optional<std::string> next();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Holds a feature of tf.train.Example: a list of one of these kinds; the others are empty.
struct TfFeature {
  std::vector<std::string> bytes{};  ///< bytes_list
  std::vector<float> floats{};       ///< float_list
  std::vector<int64_t> ints{};       ///< int64_list
};

/// Holds a tf.train.Example: its features by name. A value.
class TfExample {
 public:
  /// Takes the features by their names.
  explicit TfExample(std::map<std::string, TfFeature> features) : features_(std::move(features)) {}
  /// Returns all features by name.
  [[nodiscard]] const std::map<std::string, TfFeature>& features() const { return features_; }
  /// Throws ConfigError, naming the nearest, for a feature that there is not.
  [[nodiscard]] const TfFeature& feature(const std::string& name) const;
  /// Returns the only value of a feature. Throws ConfigError if it has another number or kind of
  /// values.
  [[nodiscard]] const std::string& bytes(const std::string& name) const;
  /// Returns the only value of a feature, which is an integer. Throws as bytes().
  [[nodiscard]] int64_t integer(const std::string& name) const;
  /// Returns the values of a feature of floats, or of integers, as a float32 tensor of the given
  /// shape. Throws ConfigError for another number or kind of values.
  [[nodiscard]] at::Tensor tensor(const std::string& name, const std::vector<int64_t>& shape) const;

 private:
  std::map<std::string, TfFeature> features_;
};

/// Parses the bytes of a record. Fields that are not known are skipped, as protobuf does. Throws
/// FormatError(`file`), naming the field, for bytes that are no such message.
[[nodiscard]] TfExample parse_tf_example(std::string_view record, const std::string& file);

/// Sets how record files are read.
struct TfRecordOptions {
  int64_t parallel_reads = 1;  ///< files that are read at a time, >= 1; the order stays the same
  int64_t limit_bytes = kMaxTfRecordBytes;  ///< of one record
};

/// Reads files of tf.train.Example into memory: `sample` makes a sample of each, input [...] and
/// target [] or [...], which must all have the same shapes; it is called by parallel_reads threads.
/// The samples stand in the order of the files and of their records. Throws ConfigError for no file
/// or no record; ShapeError for a sample of another shape or type; FormatError, with path and
/// record, also for a ConfigError or FormatError of `sample`; IoError; what `sample` throws else.
[[nodiscard]] Batch read_tfrecords(const std::vector<std::filesystem::path>& files,
                                   const std::function<Batch(const TfExample&)>& sample,
                                   const TfRecordOptions& options = {});
/// Reads TFRecord files into a data set. Throws as read_tfrecords() and tensor_dataset().
[[nodiscard]] DatasetPtr tfrecord_dataset(const std::vector<std::filesystem::path>& files,
                                          const std::function<Batch(const TfExample&)>& sample,
                                          const TfRecordOptions& options = {});

}  // namespace tare
