// Exchanges the storages of tensors, and the devices that their handles name.
#include "tare/interchange/lent_storage.h"

#include <ATen/ops/empty.h>
#include <c10/core/Allocator.h>

#include <unordered_map>
#include <utility>

namespace tare::interchange {
namespace {

void put(const at::Tensor& tensor, c10::Storage storage, c10::Device device) {
  tensor.unsafeGetTensorImpl()->set_storage_keep_dtype(std::move(storage));
  tensor.unsafeGetTensorImpl()->_change_backend_component_keys(device);
}

}  // namespace

LentStorage::~LentStorage() {
  while (!own_.empty()) {  // a tensor that has been given twice had its own memory first
    put(own_.back().tensor, std::move(own_.back().storage), own_.back().device);
    own_.pop_back();
  }
}

void LentStorage::give(const at::Tensor& tensor, c10::Storage storage, c10::Device device) {
  own_.push_back({tensor, tensor.storage(), tensor.device()});
  put(tensor, std::move(storage), device);
}

void LentStorage::take_values(const std::vector<NamedTensor>& tensors) {
  for (const auto& [name, tensor] : tensors)
    give(tensor,
         c10::Storage(c10::Storage::use_byte_size_t(), tensor.storage().nbytes(),
                      c10::GetAllocator(c10::kMeta), false),
         c10::kMeta);
}

void LentStorage::copy_to_host(const std::vector<NamedTensor>& tensors) {
  std::unordered_map<const c10::StorageImpl*, c10::Storage> copies;
  for (const auto& [name, tensor] : tensors) {
    if (tensor.device().is_cpu()) continue;
    const c10::Storage& from = tensor.storage();
    c10::Storage& copy = copies[from.unsafeGetStorageImpl()];
    if (!copy) {
      at::Tensor bytes = at::empty({0}, at::device(tensor.device()).dtype(at::kByte));
      bytes.set_(from, 0, {static_cast<int64_t>(from.nbytes())});
      copy = bytes.cpu().storage();
    }
    give(tensor, copy, c10::kCPU);
  }
}

}  // namespace tare::interchange
