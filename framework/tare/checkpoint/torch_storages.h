// The tensors of a file of torch.save: storages in the archive, and views of them. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tare/base/io.h"
#include "tare/checkpoint/pickle.h"
#include "tare/checkpoint/zip_archive.h"

namespace tare::checkpoint {

/// Returns the names that a pickle of tensors may call: those of functions, storages and dtypes.
[[nodiscard]] const std::vector<std::string_view>& torch_names();

/// Returns the name by which a pickle calls for memory of a dtype, such as "torch.FloatStorage";
/// empty: PyTorch has no class for it.
[[nodiscard]] std::string_view torch_storage_name(c10::ScalarType type);

/// Makes the tensors that the calls of a pickle describe.
class TorchStorages {
 public:
  /// Takes the archive's entries, whose names begin with `folder`; tensors keep the mapping alive.
  TorchStorages(ZipEntries entries, std::string folder, std::shared_ptr<io::Mapping> mapping);

  /// Whether the value is a call that makes a tensor.
  [[nodiscard]] static bool is_tensor(const PickleValue& value);
  /// Makes a view of a storage. Throws FormatError, naming the tensor, if it does not lie in the
  /// storage or the storage not in the archive.
  [[nodiscard]] at::Tensor tensor(const Pickle& pickle, const PickleValue& call,
                                  const std::string& name, const std::string& path);

 private:
  struct Storage {
    at::Tensor bytes;  ///< uint8, as long as the entry
    bool holds_bools = false;
    bool is_checked = false;  ///< for bools
  };
  class Call;

  Storage* find(std::string_view key);
  Storage& storage_of(const Call& call, std::string_view key, int64_t bytes);
  static void check_bools(const Call& call, Storage& storage);

  ZipEntries entries_;
  std::string folder_;
  std::shared_ptr<io::Mapping> mapping_;
  std::unordered_map<std::string, Storage> storages_;
};

}  // namespace tare::checkpoint
