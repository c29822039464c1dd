// Describes one call of an operator to the values of the stand-in, and lists the operators of a
// card that have no counterpart of their name on the host.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/stack.h>

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace stand_in {

/// The host's view of one call's tensors: the same bytes, strides and identity.
class Views {
 public:
  at::Tensor of(const at::Tensor& t) {
    if (!t.defined() || !t.is_cuda()) return t;
    for (auto& [card, host] : pairs_)
      if (card.is_same(t)) return host;
    auto& storage = storages_[t.storage().unsafeGetStorageImpl()];
    if (!storage)
      storage = c10::Storage(c10::Storage::use_byte_size_t{}, t.storage().nbytes(),
                             at::DataPtr(const_cast<void*>(t.storage().data()), c10::kCPU),
                             c10::GetAllocator(c10::kCPU), true);
    auto host = at::detail::make_tensor<c10::TensorImpl>(
        c10::Storage(storage), c10::DispatchKeySet(c10::DispatchKey::CPU), t.dtype());
    host.unsafeGetTensorImpl()->set_sizes_and_strides(t.sizes(), t.strides(), t.storage_offset());
    if (t.is_conj()) host._set_conj(true);
    if (t.is_neg()) host._set_neg(true);
    if (t.unsafeGetTensorImpl()->is_wrapped_number())
      host.unsafeGetTensorImpl()->set_wrapped_number(true);
    pairs_.emplace_back(t, host);
    return host;
  }
  std::vector<std::pair<at::Tensor, at::Tensor>>& pairs() { return pairs_; }

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> pairs_;
  std::unordered_map<c10::StorageImpl*, c10::Storage> storages_;
};

/// Holds the seed and the offset of a card's generator before the real kernel advances it.
struct Random {
  uint64_t seed = 0, offset = 0;
  at::Generator generator() const;  ///< of the host, always the same for both numbers
};

struct Call {
  Views views;
  c10::Device device{c10::kCUDA, -1};
  Random random;
  const torch::jit::Stack* real = nullptr;  ///< what the real kernel returned
  bool captured = false;  ///< the call is of a graph, whose generator LibTorch advances
};

/// Puts results where the arguments were; None keeps what the real kernel returned.
using Serve = void (*)(Call&, torch::jit::Stack&);

/// Returns what computes the operator's results; null: the host's operator of its name does.
Serve serve_of(std::string_view name);

}  // namespace stand_in
