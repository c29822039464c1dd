// Files that torch.save has written of a state dict (.pt, .pth): a memory-mapping reader that runs
// no code.
//
// Layout (PyTorch, caffe2/serialize/inline_container.h and torch/serialization.py): a zip archive
// of stored entries. NAME/data.pkl is a pickle whose tensors name their storages, NAME/data/KEY
// holds the bytes of a storage, and NAME/byteorder says "little" or "big".
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tare/base/io.h"
#include "tare/memory/named_tensor.h"

namespace tare::checkpoint {

/// Whether the file begins as a zip archive, or as the files of PyTorch before 1.6 do. Throws
/// IoError, and ConfigError for a pipe or a device.
[[nodiscard]] bool is_torch_file(const std::filesystem::path& path);

/// Holds the tensors of a state dict of PyTorch. A value; the mapping of the file lives as long as
/// a copy or a tensor of it. Thread-safe. The file must not be changed in place meanwhile.
class TorchFile {
 public:
  /// Maps the file and reads its tensors. Where the saved dict has a dict `state_dict`,
  /// `model_state_dict`, `model` or `module`, that one is opened, again and again. The values of
  /// the innermost one that are no tensors are named by others(). The archive's checksums are not
  /// compared, because torch.save has an option to omit them.
  ///
  /// Throws IoError; FormatError for a file that is no such archive, also one that PyTorch before
  /// 1.6 wrote; for data.pkl where it calls what is not read, such as the class of a whole module;
  /// for two of these dicts side by side, or none with a tensor; and, by the tensor's name, for a
  /// shape, stride or place that does not fit its storage. Nothing is called, whatever the file
  /// says.
  [[nodiscard]] static TorchFile open(const std::filesystem::path& path);

  /// Returns the path that open() was given.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] int64_t file_bytes() const { return file_bytes_; }  ///< returns the whole size
  /// Returns the tensors in the order of the dict, on the mapped bytes, with the strides that they
  /// were saved with; views of one storage share it. Writing to them does not change the file. A
  /// storage that is not aligned, as in archives of other writers, is a copy.
  [[nodiscard]] const std::vector<NamedTensor>& tensors() const { return tensors_; }
  /// Returns the keys that lead to the tensors, such as "state_dict"; empty: the dict itself has
  /// them.
  [[nodiscard]] const std::string& place() const { return place_; }
  /// Returns the keys beside the tensors, and beside the dicts of place().
  [[nodiscard]] const std::vector<std::string>& others() const { return others_; }

 private:
  TorchFile() = default;

  std::filesystem::path path_;
  int64_t file_bytes_ = 0;
  std::vector<NamedTensor> tensors_;
  std::string place_;
  std::vector<std::string> others_;
};

}  // namespace tare::checkpoint
