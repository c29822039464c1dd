// Batch: named input and target tensors of some samples; and Outputs: what a model makes of them.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "tare/memory/named_tensor.h"

namespace tare {

/// Holds named tensors in a fixed order. A list of one tensor needs no memory of its own.
using NamedTensors = c10::SmallVector<NamedTensor, 1>;

/// Holds some samples as tensors, on the host unless a Learner has moved them. N: samples. A value:
/// its copies share the tensors.
struct Batch {
  Batch() = default;
  /// Makes a batch of one tensor named "input" and, unless it is undefined, one named "target".
  Batch(at::Tensor input, at::Tensor target = {});  // NOLINT: implicit, `return {x, y}`
  /// Takes tensors by name; the sizes of their first dimension must be equal, which is not checked.
  Batch(NamedTensors of_inputs, NamedTensors of_targets)
      : inputs(std::move(of_inputs)), targets(std::move(of_targets)) {}

  NamedTensors inputs{};   ///< each [N, ...], in the order of the model's forward
  NamedTensors targets{};  ///< [N] int64 class indices, or [N, ...]; empty: the data has none

  /// Returns the first input, which is the only one of most data; undefined: the batch is empty.
  [[nodiscard]] const at::Tensor& input() const&;
  /// Returns a tensor that does not refer to this batch, which ends here.
  [[nodiscard]] at::Tensor input() && { return std::as_const(*this).input(); }
  /// Returns the first target, which is the only one of most data; undefined: there is none.
  [[nodiscard]] const at::Tensor& target() const&;
  /// Returns a tensor that does not refer to this batch, which ends here.
  [[nodiscard]] at::Tensor target() && { return std::as_const(*this).target(); }
  /// Returns an input by its name. Throws ConfigError, naming the nearest, for one that the batch
  /// has not.
  [[nodiscard]] const at::Tensor& input(std::string_view name) const&;
  /// Returns a target by its name. Throws as input().
  [[nodiscard]] const at::Tensor& target(std::string_view name) const&;
  /// Replaces the first input; adds one named "input" where there is none.
  void set_input(at::Tensor tensor);
  /// Replaces the first target; adds one named "target" where there is none.
  void set_target(at::Tensor tensor);

  /// Releases the tensors.
  void reset() {
    inputs.clear();
    targets.clear();
  }
  /// Returns the number of samples in the batch: the first dimension of the first input; 0: it is
  /// empty.
  [[nodiscard]] int64_t size() const { return input().defined() ? input().size(0) : 0; }
  /// Returns the samples [start, start + length), as views.
  [[nodiscard]] Batch narrow(int64_t start, int64_t length) const;
  /// Returns the inputs, then the targets.
  [[nodiscard]] std::vector<at::Tensor> tensors() const;
  /// Returns these tensors, as many as tensors() returns, as a batch under the names of this batch.
  [[nodiscard]] Batch with(std::span<const at::Tensor> tensors) const;
};

/// Returns the hashes of the bytes of all tensors but the first target, one behind the other. The
/// tensors are on the host.
[[nodiscard]] std::string hash_of(const Batch& batch);
/// Makes a batch of equal names, shapes and dtypes on the meta device, which keeps no memory.
[[nodiscard]] Batch on_meta(Batch batch);
/// Whether two batches have tensors of the same names, dtypes and sizes behind the first `skip`
/// dimensions.
[[nodiscard]] bool same_layout(const Batch& one, const Batch& other, size_t skip = 0);
/// Returns one batch of several with the same layout: each of its tensors is `join` of theirs, such
/// as at::cat. Throws what `join` throws.
[[nodiscard]] Batch joined(std::vector<Batch> parts,
                           const std::function<at::Tensor(const std::vector<at::Tensor>&)>& join);

/// Holds the result of a model's forward or of a Task for a batch: one tensor or several, in the
/// order in which they are returned. N: samples.
class Outputs {
 public:
  Outputs() = default;
  /// Wraps the tensor of a model with one output.
  Outputs(at::Tensor one) { all_.push_back(std::move(one)); }  // NOLINT: implicit
  /// Takes the tensors in the order of the list.
  Outputs(const std::vector<at::Tensor>& several)  // NOLINT: implicit
      : all_(several.begin(), several.end()) {}
  /// Takes the elements of the tuple in order, as a forward returns them.
  template <std::convertible_to<at::Tensor>... T>
  Outputs(const std::tuple<T...>& several) {  // NOLINT: implicit
    std::apply([this](const auto&... tensor) { (all_.push_back(tensor), ...); }, several);
  }
  /// Takes two tensors in order.
  Outputs(const std::pair<at::Tensor, at::Tensor>& two) {  // NOLINT: implicit
    all_.push_back(two.first);
    all_.push_back(two.second);
  }

  /// Returns the first tensor, [N, ...]; undefined: there is none.
  [[nodiscard]] const at::Tensor& front() const;
  [[nodiscard]] size_t size() const { return all_.size(); }  ///< counts the tensors
  /// Whether there is a first tensor.
  [[nodiscard]] bool defined() const { return front().defined(); }
  /// Returns output number `index` < size(), which is not checked.
  [[nodiscard]] const at::Tensor& operator[](size_t index) const { return all_[index]; }
  /// Returns output number `index` < size(), which is not checked.
  [[nodiscard]] at::Tensor& operator[](size_t index) { return all_[index]; }
  [[nodiscard]] auto begin() const { return all_.begin(); }  ///< of the tensors in order
  [[nodiscard]] auto end() const { return all_.end(); }      ///< of the tensors in order
  [[nodiscard]] auto begin() { return all_.begin(); }        ///< of the tensors in order
  [[nodiscard]] auto end() { return all_.end(); }            ///< of the tensors in order
  /// Releases the tensors.
  void reset() { all_.clear(); }

 private:
  c10::SmallVector<at::Tensor, 1> all_;
};

}  // namespace tare
