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
#include "tare/checkpoint/digest.h"
#include "tare/checkpoint/safetensors_header.h"
#include "tare/checkpoint/tensor_info.h"
#include "tare/memory/named_tensor.h"

namespace tare::checkpoint {

/// Reads an open file: a value, cheap to copy. The mapping lives as long as a copy or a tensor of
/// it. Thread-safe. The file must not be changed in place meanwhile; replacing it by rename, as the
/// writers here do, is safe.
class SafeTensors {
 public:
  /// Maps the file and checks its header; does not read the data. Throws IoError, FormatError.
  [[nodiscard]] static SafeTensors open(const std::filesystem::path& path);

  /// Returns the path that open() was given.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] int64_t file_bytes() const;  ///< returns the size of the whole file
  /// Describes the tensors in the order of their data, without tied names (see write).
  [[nodiscard]] const std::vector<TensorInfo>& tensors() const& { return header_->tensors; }
  /// Returns the tensors of a file that is closed at the end of the expression, for a loop over
  /// open(path).tensors().
  [[nodiscard]] std::vector<TensorInfo> tensors() && { return header_->tensors; }
  /// Returns the texts of the header's `__metadata__`.
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const {
    return header_->metadata;
  }
  /// Returns the names that were tied to another tensor when they were written, and that tensor's
  /// name.
  [[nodiscard]] const std::map<std::string, std::string>& ties() const { return *ties_; }

  /// Whether there is a tensor, or a tie, of this name.
  [[nodiscard]] bool contains(const std::string& name) const;
  /// Returns the description of a tensor or, for a tied name, of the tensor to which it is tied.
  /// Throws FormatError for an unknown name, naming the nearest.
  [[nodiscard]] const TensorInfo& info(const std::string& name) const;
  /// Returns a CPU tensor on the mapped bytes, without a copy; writing to it changes neither the
  /// file nor other mappings. Data that is not aligned for its dtype (in files of other writers) is
  /// copied. Throws FormatError for a bool tensor with a byte other than 0 and 1.
  [[nodiscard]] at::Tensor tensor(const std::string& name) const;
  /// Returns all tensors; tied names share a storage.
  [[nodiscard]] std::vector<NamedTensor> all() const;
  /// Returns the raw bytes of one of tensors().
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

/// Hashes every tensor of a file; reads all of it.
[[nodiscard]] Digest digest(const SafeTensors& file);
/// Returns the digest that write() would return, without writing.
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
/// Writes the file at a path, atomically and flushed.
Digest write(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
             const std::map<std::string, std::string>& metadata = {});

}  // namespace tare::checkpoint
