// Safetensors files: a strict memory-mapping reader, and a writer whose bytes equal those of the
// reference implementation.
//
// Layout (https://huggingface.co/docs/safetensors): 8 bytes little-endian header length, the header
// as JSON, padded with spaces so that the data starts at a multiple of 8, then the tensors' bytes
// without gaps. docs/formats.md lists every rule that is checked.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tare/base/io.h"
#include "tare/checkpoint/named_tensor.h"

namespace tare::checkpoint {

inline constexpr int64_t kMaxHeaderBytes = 100'000'000;  ///< as in safetensors' own reader
inline constexpr int64_t kMaxTensors = 1'000'000;
inline constexpr int64_t kMaxNameBytes = 4096;
inline constexpr int64_t kMaxRank = 64;

/// What the header says of one tensor.
struct TensorInfo {
  std::string name;  ///< UTF-8, 1 to kMaxNameBytes, no control characters
  c10::ScalarType dtype = c10::ScalarType::Float;
  std::vector<int64_t> shape;
  int64_t offset = 0;  ///< of the first byte, from the start of the data
  int64_t bytes = 0;

  bool operator==(const TensorInfo&) const = default;
};

/// A header that has passed every check that does not need the data.
struct Header {
  std::vector<TensorInfo> tensors;              ///< in the order of their data
  std::map<std::string, std::string> metadata;  ///< "__metadata__"
  int64_t data_start = 0;                       ///< offset of the data in the file
};

/// Parses the header of a safetensors file; `file` is its whole content, `path` is for messages.
/// Lengths are checked before anything is allocated for them. Throws FormatError, naming the tensor
/// or field that breaks a rule.
[[nodiscard]] Header parse_header(std::span<const std::byte> file,
                                  const std::filesystem::path& path);

/// An open file: a value, cheap to copy. The mapping lives as long as a copy or a tensor of it.
/// Thread-safe. The file must not be changed in place meanwhile; replacing it by rename, as the
/// writers here do, is safe.
class SafeTensors {
 public:
  /// Maps the file and checks its header; does not read the data. Throws IoError, FormatError.
  [[nodiscard]] static SafeTensors open(const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] int64_t file_bytes() const;
  /// In the order of their data, without tied names (see write).
  [[nodiscard]] const std::vector<TensorInfo>& tensors() const { return header_->tensors; }
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const {
    return header_->metadata;
  }
  /// Names that were tied to another tensor when they were written, and that tensor's name.
  [[nodiscard]] const std::map<std::string, std::string>& ties() const { return *ties_; }

  [[nodiscard]] bool contains(const std::string& name) const;
  /// The tensor or, for a tied name, the one it is tied to. Throws FormatError for an unknown name,
  /// naming the nearest.
  [[nodiscard]] const TensorInfo& info(const std::string& name) const;
  /// A CPU tensor on the mapped bytes, without a copy; writing to it changes neither the file nor
  /// other mappings. Data that is not aligned for its dtype (in files of other writers) is copied.
  /// Throws FormatError for a bool tensor with a byte other than 0 and 1.
  [[nodiscard]] at::Tensor tensor(const std::string& name) const;
  /// All tensors; tied names share a storage.
  [[nodiscard]] std::vector<NamedTensor> all() const;
  /// The raw bytes of one of tensors().
  [[nodiscard]] std::span<const std::byte> data(const TensorInfo& info) const;

 private:
  SafeTensors() = default;
  [[nodiscard]] at::Tensor make(const TensorInfo& info) const;

  std::filesystem::path path_;
  std::shared_ptr<io::Mapping> mapping_;
  std::shared_ptr<const Header> header_;
  std::shared_ptr<const std::map<std::string, std::string>> ties_;
  std::shared_ptr<const std::unordered_map<std::string, size_t>> index_;
};

/// Hashes of a file's content, by which any accidental change is detected.
struct Digest {
  std::string layout;  ///< of names, dtypes, shapes, offsets and metadata (but for key "tare")
  /// XXH3-64 of each tensor's bytes, as 16 hexadecimal digits.
  std::map<std::string, std::string> tensors;

  bool operator==(const Digest&) const = default;
};

/// Hashes every tensor of a file; reads all of it.
[[nodiscard]] Digest digest(const SafeTensors& file);
/// The digest that write() would return, without writing.
[[nodiscard]] Digest digest(const std::vector<NamedTensor>& tensors,
                            const std::map<std::string, std::string>& metadata = {});
/// Throws FormatError naming the first tensor (or "header") of the file that differs from
/// `expected`.
void verify(const SafeTensors& file, const Digest& expected, std::string_view operation);

/// Writes tensors of any device and layout as a safetensors file into an open file. Copies to the
/// host, where needed, are made one tensor at a time. Disk space is reserved first. Not flushed.
/// Waits for the device.
///
/// The order is that of safetensors' own writer (dtypes from wide to narrow, then names), so equal
/// content gives equal bytes. Two tensors that are the same view of one storage are tied: written
/// once, under the first name, the others listed in the metadata entry "tare.tied". Tensors that
/// overlap otherwise are each written in full. Throws ConfigError for a name that is empty, given
/// twice, reserved ("__metadata__"), too long or not UTF-8 without control characters, for an
/// undefined tensor, and for a dtype that has no place in the format; IoError.
Digest write(io::File& file, const std::vector<NamedTensor>& tensors,
             const std::map<std::string, std::string>& metadata = {});
/// The same to a path, atomically and flushed.
Digest write(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
             const std::map<std::string, std::string>& metadata = {});

/// "float32 [10, 512]".
[[nodiscard]] std::string describe(c10::ScalarType dtype, c10::IntArrayRef shape);

}  // namespace tare::checkpoint
