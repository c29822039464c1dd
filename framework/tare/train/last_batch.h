// Batches of one sample, which a batch norm cannot train on. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tare/model/model.h"

namespace tare {

/// Holds the values that decide how many samples the forwards of an epoch get.
struct BatchSizes {
  int64_t samples = 0;  ///< of the training split
  int64_t batch = 1;    ///< see LearnerOptions, also for the others
  std::optional<int64_t> micro_batch{};
  std::optional<bool> drop_last{};
  int64_t ranks = 1;  ///< that divide each batch
};

/// Says in which batches, if any, a forward gets a single sample.
enum class SinglePart {
  nowhere,
  every_batch,  ///< in each batch, by its size or that of its parts
  last_batch    ///< in the epoch's last batch only, which is not full
};
/// Decides by the sizes alone: whether an epoch skips its last batch does not count here.
[[nodiscard]] SinglePart single_part(const BatchSizes& sizes);
/// Returns "the last batch of an epoch has 1 sample (33 in batches of 16): batch norm ...; ".
[[nodiscard]] std::string last_batch_text(const BatchSizes& sizes);

/// Throws ConfigError, naming `call`, where a batch norm would have to train on a single sample and
/// `drop_last` does not skip it. Calls `refuses` only where there is one.
void check_single_samples(const std::string& call, const BatchSizes& sizes,
                          const std::function<bool()>& refuses);

/// Whether a batch norm of the model refuses to train on one sample like `sample`, a batch of one,
/// tried by `forward` with zeros on the first of the model's devices, which may be meta. Leaves the
/// model and the random generators as they were. Throws what `forward` throws, except LibTorch's
/// errors other than OutOfMemory.
[[nodiscard]] bool refuses_single_sample(Model& model, const std::vector<c10::Device>& devices,
                                         const Batch& sample,
                                         const std::function<Outputs(const Batch&)>& forward);
/// Whether a model whose inputs are unknown has a batch norm of vectors. Images have more than one
/// value per channel.
[[nodiscard]] bool has_batch_norm_of_vectors(const Model& model);

}  // namespace tare
