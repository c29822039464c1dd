// Dataset: gives whole batches; and decorators that build one data set from another.
//
// A batch is requested by sample indices; nothing is fetched sample by sample and stacked. What is
// random about a sample depends only on (seed, index), so batch size, number of workers and
// resuming change nothing.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tare/data/batch.h"
#include "tare/memory/accountable.h"
#include "tare/transform/transform.h"

namespace tare {

/// Requests samples by index, with or without random transforms.
struct BatchRequest {
  std::span<const int64_t> indices{};  ///< each in [0, size of the data set); alive during the call
  uint64_t seed = 0;                   ///< derived from (run seed, epoch)
  bool training = false;               ///< apply random transforms
};

/// Represents a finite set of samples in a fixed order. Immutable and thread-safe.
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// Returns the number of samples, >= 1.
  [[nodiscard]] virtual int64_t size() const = 0;
  /// Returns the requested samples in the requested order, in new tensors. Throws ConfigError for
  /// an index out of range.
  [[nodiscard]] virtual Batch get(const BatchRequest& request) const = 0;
  /// Returns the first sample alone, without random transforms, for the names, shapes and dtypes of
  /// what the data set gives.
  [[nodiscard]] virtual Batch first_sample() const;
  /// Returns the shape of one sample of the first input as get() gives it, e.g. [channels, height,
  /// width].
  [[nodiscard]] virtual std::vector<int64_t> sample_shape() const = 0;
  /// Returns a name of the sample by which a person finds it, such as the path of its file below
  /// the data folder; empty: it has none. `index`: in [0, size).
  [[nodiscard]] virtual std::string sample_name(int64_t index) const;
  /// Returns how large a sample is compared with the others, such as the length of a sequence; a
  /// batch takes the most memory with the largest. 0 for all: they are of one size. `index`: in [0,
  /// size).
  [[nodiscard]] virtual int64_t sample_size(int64_t index) const;
  /// Returns how large each tensor of a sample is, where several differ on their own; by default
  /// what sample_size() returns. The number of tensors is the same for all samples. `index`: in [0,
  /// size).
  [[nodiscard]] virtual std::vector<int64_t> sample_sizes(int64_t index) const;
  /// Returns the names of the classes, by class index; empty: unknown.
  [[nodiscard]] virtual std::vector<std::string> labels() const { return {}; }
  /// Returns what was done to a raw sample until get() gives it, for the bundle: the steps of its
  /// reader, then those that get() applies; nullptr: nothing. The data set owns the list.
  [[nodiscard]] virtual const Transforms* transforms() const { return nullptr; }
  /// Whether transforms() lists everything that is done to the inputs. Without it a model that is
  /// trained on them cannot be exported, because predictions would see other inputs.
  [[nodiscard]] virtual bool described() const { return true; }
  /// Returns the first target of all samples in order, [size, ...]; undefined: there is none. The
  /// default collects it with get().
  [[nodiscard]] virtual at::Tensor targets() const;
  /// Returns the bytes to which a reader has cut each text, for the bundle; 0: texts are whole.
  [[nodiscard]] virtual int64_t text_length() const { return 0; }
  /// Whether get() does nothing but copy samples of tensors that it keeps: there is nothing to
  /// cache().
  [[nodiscard]] virtual bool in_memory() const { return false; }
  /// Returns a hash of the samples as they are in memory, but for the first target, so that a
  /// resumed run notices other data. Returns "" if the samples are not in memory; nothing is read
  /// for a hash.
  [[nodiscard]] virtual std::string content() const { return {}; }
  /// Adds the tensors it keeps to a ledger, under Category::other; samples that it keeps to be
  /// faster, and could read again, under Category::batch.
  virtual void account(Ledger&) const {}
  /// Frees samples that it keeps to be faster and can read again. The samples stay the same.
  /// Thread-safe.
  virtual void clear_cache() const {}
};
/// Points to a data set, which decorators, splits and loaders share.
using DatasetPtr = std::shared_ptr<const Dataset>;

/// Returns the whole data set in one batch, without random transforms.
[[nodiscard]] Batch get_all(const Dataset& data);

/// Returns the samples that together make a batch as large as any can be: for each of
/// sample_sizes() the first of the largest, sorted, each once. {0}: all are of one size.
[[nodiscard]] std::vector<int64_t> largest_samples(const Dataset& data);

/// Returns for each of sample_sizes() the first of the smallest samples.
[[nodiscard]] std::vector<int64_t> smallest_samples(const Dataset& data);

/// Returns a data set of tensors in memory, shared with the caller, who must not change them
/// afterwards. `input`: [N, ...] of any dtype, on the host, made contiguous; `target`: [N, ...] or
/// undefined. Throws ConfigError for an empty set, or a class index of `target` without a name in
/// `labels` if there are any; ShapeError for different sizes; DeviceError for a tensor that is not
/// on the host.
[[nodiscard]] DatasetPtr tensor_dataset(const at::Tensor& input, const at::Tensor& target = {},
                                        std::vector<std::string> labels = {});
/// Returns a data set of several inputs or targets, each [N, ...], in the order of the model's
/// forward. `labels` are those of the first target. Throws as above; ConfigError for a name that is
/// empty or there twice.
[[nodiscard]] DatasetPtr tensor_dataset(const NamedTensors& inputs, const NamedTensors& targets,
                                        std::vector<std::string> labels = {});

/// Returns `base`, whose samples are images [channels, height, width] of uint8 or float32, with
/// `transforms` applied after its own. Further inputs that are images, of any size, get them too,
/// with random numbers of their own; other inputs stay as they are. Targets that are images of the
/// first input's height and width (masks) are moved with it, see Transforms::apply_to_targets.
/// Targets that look like images of another size are refused where a random step moves the images,
/// see Transforms::check_targets_move: at once of a tensor_dataset, else by get().
/// transforms() gives the whole list. On a tensor_dataset, gather and transforms are one pass.
[[nodiscard]] DatasetPtr transformed(const DatasetPtr& base, const Transforms& transforms);

/// Returns the samples at `indices` of `base`, in that order; repetition is allowed. Random
/// transforms of `base` see the index in `base`. With `random` false they are never applied. Throws
/// ConfigError for an empty list or an index out of range.
[[nodiscard]] DatasetPtr subset(const DatasetPtr& base, std::vector<int64_t> indices,
                                bool random = true);

/// Returns `base` with a function applied to each batch. The function must be thread-safe, treat
/// each sample independently and keep the number of samples (else get() throws ShapeError).
/// `sample_shape`: of the inputs it returns; empty: as in `base`. `as`: transforms that do to an
/// input what the function does, for the bundle; Transforms{} where it leaves the inputs as they
/// are. Unset: a bundle cannot describe the data, and a model trained on it is not exported.
[[nodiscard]] DatasetPtr map(const DatasetPtr& base, std::function<Batch(Batch)> function,
                             std::vector<int64_t> sample_shape = {},
                             std::optional<Transforms> as = std::nullopt);

/// Returns `base` read once, without random transforms, and kept in memory: for slow readers and
/// maps. `base` itself where it is in memory already.
[[nodiscard]] DatasetPtr cache(const DatasetPtr& base);

/// Throws ConfigError, naming the first element, if a class index in `targets` (int64, any shape)
/// is neither in [0, classes) nor -100, which the losses ignore; ShapeError if it is not int64.
void check_labels(const at::Tensor& targets, int64_t classes);

}  // namespace tare
