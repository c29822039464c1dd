// Data sets that work on whole batches, and the decorators that build one from another.
//
// A batch is asked for by sample indices, never sample by sample and stacked. What is random about
// a sample depends on nothing but (seed, index): batch size, number of workers and a resumed run
// change nothing.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tare/transform/transform.h"

namespace tare {

/// Host tensors. Both start with the sample dimension.
struct Batch {
  at::Tensor input{};   ///< [N, ...]
  at::Tensor target{};  ///< [N] int64 class indices, or [N, ...]; undefined where the data has none
  [[nodiscard]] int64_t size() const { return input.defined() ? input.size(0) : 0; }
};

struct BatchRequest {
  std::span<const int64_t> indices{};  ///< each in [0, size of the data set); alive during the call
  uint64_t seed = 0;                   ///< of (run seed, epoch)
  bool training = false;               ///< random transforms act
};

/// A finite set of samples in a fixed order. Immutable and thread-safe.
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// Samples, >= 1.
  [[nodiscard]] virtual int64_t size() const = 0;
  /// The samples asked for, in that order, in tensors of their own. Throws ConfigError for an index
  /// out of range.
  [[nodiscard]] virtual Batch get(const BatchRequest& request) const = 0;
  /// Shape of one input as get() gives it, e.g. [channels, height, width].
  [[nodiscard]] virtual std::vector<int64_t> sample_shape() const = 0;
  /// Names of the classes, by class index; empty where there are none.
  [[nodiscard]] virtual std::vector<std::string> labels() const { return {}; }
  /// The pipeline that get() applies, for the bundle; nullptr for none. Belongs to the data set.
  [[nodiscard]] virtual const Transforms* transforms() const { return nullptr; }
  /// All targets, [size, ...], in order; undefined where there are none. By default collected with
  /// get().
  [[nodiscard]] virtual at::Tensor targets() const;
};
using DatasetPtr = std::shared_ptr<const Dataset>;

/// Tensors in memory, shared with the caller and not to be changed any more. `input`: [N, ...] of
/// any dtype, on the host, made contiguous; `target`: [N, ...] or undefined. A batch is a gather of
/// rows. Throws ConfigError for an empty set and for a class index of `target` that `labels`, where
/// given, does not name; ShapeError for sizes that differ, DeviceError for a tensor that is not on
/// the host.
[[nodiscard]] DatasetPtr tensor_dataset(const at::Tensor& input, const at::Tensor& target = {},
                                        std::vector<std::string> labels = {});

/// Images of `base` ([C, H, W], uint8 or float32) through `transforms`, after those that `base`
/// applies itself. On a tensor_dataset gather and transforms are one pass. transforms() gives the
/// whole list.
[[nodiscard]] DatasetPtr transformed(const DatasetPtr& base, const Transforms& transforms);

/// The samples at `indices` of `base`, in that order; repetition is allowed. Random transforms of
/// `base` see the index in `base`. With `random` false they never act. Throws ConfigError for an
/// empty list or an index out of range.
[[nodiscard]] DatasetPtr subset(const DatasetPtr& base, std::vector<int64_t> indices,
                                bool random = true);

/// `base` with a function over each batch. The function must be thread-safe, must treat each sample
/// by itself and must keep the number of samples (else get() throws ShapeError). `sample_shape`: of
/// its inputs; empty: those of `base`.
[[nodiscard]] DatasetPtr map(const DatasetPtr& base, std::function<Batch(Batch)> function,
                             std::vector<int64_t> sample_shape = {});

/// `base` read once, without its random transforms, and kept in memory as get() gives it: for slow
/// readers and maps.
[[nodiscard]] DatasetPtr cache(const DatasetPtr& base);

/// Throws ConfigError when a class index of `targets` (int64, any shape) is neither in [0, classes)
/// nor -100, which the losses leave out, naming the first such element; ShapeError when it is not
/// int64.
void check_labels(const at::Tensor& targets, int64_t classes);

}  // namespace tare
