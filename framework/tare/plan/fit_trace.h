// FitTrace: a fit gone through on the meta device by the Learner's own code. Internal.
#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tare/parallel/stages.h"
#include "tare/trace/allocation_trace.h"
#include "tare/trace/estimate.h"
#include "tare/trace/not_plannable.h"
#include "tare/train/compute_error.h"
#include "tare/train/options.h"

namespace tare {

struct LearnerState;

/// Extrapolates what get() of a data set allocates on the host from few samples to any number.
class BatchAllocations {
 public:
  /// Reads some samples. Throws what the data set throws.
  BatchAllocations(DatasetPtr data, bool training);
  /// Returns what get() allocates for so many samples. Reads so many only if few do not show it.
  [[nodiscard]] plan::AllocationTrace of(int64_t samples) const;
  /// Returns the tensors that a trace of of() gives, under their names.
  [[nodiscard]] Batch named(std::span<const at::Tensor> tensors) const {
    return sample_.with(tensors);
  }
  /// Returns one sample on the meta device, [1, ...].
  [[nodiscard]] const Batch& sample() const { return sample_; }
  /// Returns a batch of the largest samples and others, over again where there are fewer: no batch
  /// of the data takes more memory.
  [[nodiscard]] Batch read(int64_t samples) const;
  [[nodiscard]] const DatasetPtr& data() const { return data_; }

 private:
  [[nodiscard]] plan::AllocationTrace record(int64_t samples) const;

  DatasetPtr data_;
  bool training_;
  std::vector<int64_t> largest_;  // indices of samples
  plan::AllocationTrace two_, three_;
  bool affine_ = false;
  Batch sample_;  // the first one read, on the meta device
};

/// Batches of an epoch after which a checkpoint is saved.
struct SavingBatches {
  bool whole = false;  ///< after a batch that is not the short one at the end
  bool last = false;   ///< after the short one
};

/// Describes a fit to be planned.
struct PlanRequest {
  std::function<Model()> model{};  ///< builds it anew
  /// batch, loss, metrics, optimizer, workers, drop_last, task; of its callbacks the checkpoints
  /// that they save, the memory that their facts() name, and what planned() of them allocates
  LearnerOptions options{};
  std::shared_ptr<const BatchAllocations> train{}, valid{};  ///< `valid` may be null
  /// Brings the new Learner to where counting begins, e.g. freezes layers; may be empty.
  std::function<void(LearnerState&)> before{};
  /// The data set, if it counts: it is read first.
  plan::AllocationTrace data_set{};
  /// Changes the model between the start of counting and the fit; may be empty.
  std::function<void(LearnerState&)> set_up{};
  int64_t ranks = 1;  ///< that share each batch
  int64_t rank = 0;   ///< the one that is planned
  /// Holds a card for each of options.stages; empty: one card has the model, or the host.
  std::vector<plan::Target> cards{};
  plan::Machine machine = plan::Machine::host;  ///< where the host is: data and loader count too
  int64_t epochs = 2;                           ///< of the fit
  int64_t batches = 0;                          ///< of the fit in all; 0: its epochs are whole
  /// After which batches automatic checkpoints are written. What writing one takes counts.
  SavingBatches saving{};
  /// Whether a checkpoint is saved when the fit has ended, which counts on the host.
  bool saves_at_end = false;
  /// The search with which the fit begins; unset: its rate is given.
  std::optional<LrFindOptions> search{};

  [[nodiscard]] bool on_host() const { return !machine.is_card(); }
};

/// Holds the samples per forward.
struct PartSizes {
  int64_t train = 1;  ///< of a training step
  int64_t valid = 1;  ///< of a validation
};

struct FitTrace {
  plan::Trace trace{};
  plan::Section counted{};
};

/// Returns what `work` returns. Where LibTorch has refused an operation of it, LibTorch's own error
/// is thrown in place of the ComputeError, and NotPlannable for an error of oneDNN.
template <class Work>
auto as_refused(const Work& work) {
  try {
    return work();
  } catch (const ComputeError& error) {
    try {
      std::rethrow_if_nested(error);
    } catch (const c10::Error&) {
      throw;
    } catch (const std::exception& why) {
      throw plan::NotPlannable("the fit", std::string("is refused: ") + why.what(),
                               "change what is refused");
    }
    throw;
  }
}

/// Returns the division of a model of the request into its stages, all on one device.
[[nodiscard]] parallel::Stages stages_of(const Model& model, const PlanRequest& request,
                                         c10::Device device);

/// Traces some steps, the last of them as short as the epoch's last, and a validation, in parts of
/// these sizes. Throws plan::NotPlannable; c10::Error for work that meta tensors cannot do.
[[nodiscard]] FitTrace trace_fit(const PlanRequest& request, int64_t batch, const PartSizes& parts);

/// Describes a batch of a trace, and its parts that the trace goes through: all of them, or at most
/// the first two and the last, because those between allocate what the second does.
struct BatchShape {
  int64_t samples = 0;   ///< 0: there is no such batch
  int64_t parts = 1;     ///< 1: the batch is not cut
  int64_t smallest = 0;  ///< samples in the last part; in all of one part `samples`
  int64_t larger = 0;    ///< how many of the first parts have one sample more
  /// How often the last part comes again: a rank that shards gradients computes as many parts as
  /// the rank with most, see Ranks::agree_on_parts().
  int64_t repeats = 0;
  friend bool operator==(const BatchShape&, const BatchShape&) = default;
};

/// Returns the shape of a batch of so many samples in parts of at most `size`; see slices_of().
/// `all`: the trace goes through all of them, because the activations of all are alive at once.
[[nodiscard]] BatchShape batch_shape(int64_t samples, int64_t size, bool all = false);

/// Describes the batches of a split in a trace.
struct SplitShape {
  BatchShape whole{}, last{};  ///< last: the shorter one at the end
  int64_t count = 0;           ///< whole batches
  int64_t most_samples = 0;    ///< of the split, that the rank with most of them goes through
  int64_t ahead = 0;           ///< batches that the loader has made ahead
  int64_t makers = 0;          ///< threads of the loader, which make batches at any moment
  bool counted = true;         ///< false: only the tensors count, as for a device that gets them
  /// The inputs that are not counted are cast to bfloat16, or laid out channels-last, before.
  bool halves = false, channels_last = false;
  [[nodiscard]] int64_t size() const { return count * whole.samples + last.samples; }
};

struct FitShape {
  int64_t micro_batch = 0;  ///< for the training split; at most its whole batches' samples
  SplitShape train{};
  std::optional<SplitShape> valid{};
  /// The fit validates inside an epoch at some time, which the trace does once in each.
  bool validates_inside = false;
  int64_t epochs = 1;   ///< 2 where only the second one has whole batches after the first step
  int64_t batches = 0;  ///< of these epochs in all; 0: they are whole
  int64_t search_epochs = 1;  ///< of a search for the rate, as `epochs`; they are whole
};

/// Returns the shape of the trace of a fit with batches of that size, in parts of these sizes.
[[nodiscard]] FitShape shape_of(const PlanRequest& request, int64_t batch, const PartSizes& parts);

/// Returns the trace of a fit with batches of that shape, for real on the host with samples of the
/// data. Throws ComputeError for what LibTorch refuses.
[[nodiscard]] FitTrace trace_real_fit(const PlanRequest& request, const FitShape& shape);

}  // namespace tare
