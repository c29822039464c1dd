// MemoryPlan: the memory that a fit will need, predicted before it runs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tare/memory/accountable.h"
#include "tare/model/model.h"
#include "tare/train/padding.h"

namespace tare {

/// Sets the device, the batch and the model for which a fit is planned.
struct PlanOptions {
  /// Names the target, see plan::parse_target: "host", "host:8GiB", "cuda:H200", "cuda:24GiB";
  /// empty: the Learner's device. Other devices than the Learner's need not be there.
  std::string device{};
  int64_t batch = 0;  ///< samples per step; 0: the Learner's
  /// Builds a model like the Learner's anew. For one that is not from the registry: its parameters
  /// are made on the meta device, or on the host for a probe, and dropped.
  std::function<Model()> model{};
  bool advice = true;  ///< also look for the largest batches and for savings, by further plans
};

/// Gives the peak of the same fit with one change.
struct PlanSaving {
  std::string change{};    ///< e.g. "optimizer.kind=sgd optimizer.momentum=0"
  int64_t peak_bytes = 0;  ///< as MemoryPlan::peak_bytes
  bool at_least = false;   ///< true: a bound, the peak may be higher
};

/// Predicts the memory of one stage of a model that is divided over several cards.
struct StagePlan {
  std::string device{};        ///< planned for
  std::string groups{};        ///< its layer groups, "stem to layer3"
  int64_t capacity_bytes = 0;  ///< what tensors can take there
  int64_t start_bytes = 0;     ///< as MemoryPlan::start_bytes
  int64_t peak_bytes = 0;      ///< as MemoryPlan::peak_bytes
  int64_t reserved_bytes = 0;  ///< as MemoryPlan::reserved_bytes
  bool fits = true;            ///< whether it is within the capacity
};

/// Predicts the memory of a fit. A value. Bytes are allocated ones, as `tare run` measures them.
struct MemoryPlan {
  std::string name{};                    ///< of the recipe's phase; empty for Learner::plan
  std::string device{};                  ///< planned for
  int64_t capacity_bytes = 0;            ///< what tensors can take there
  std::optional<int64_t> total_bytes{};  ///< of a card on which that is free, see plan::Target
  int64_t batch = 0;                     ///< samples per step
  int64_t start_bytes = 0;  ///< what the plan counts as there before: the model, kept state
  int64_t peak_bytes = 0;   ///< highest allocated bytes above that
  /// Bounds `peak_bytes` from above: equal to it where everything is counted, what the card has
  /// beyond the start where only workspaces of convolutions are not; 0: no bound is known.
  int64_t at_most_bytes = 0;
  int64_t reserved_bytes = 0;  ///< highest that the allocator holds, the start included
  CategoryBytes categories{};  ///< of the peak; sums to peak_bytes
  std::string at{};            ///< where the peak is: "backward, convolution_backward"
  /// Whether start and peak (CUDA: reserved) are within the capacity, in parts of the size that the
  /// run begins with.
  bool fits = true;
  /// Fits only while the allocator of the card returns its cache in each step, which waits for the
  /// card. A run that may choose its micro-batches takes smaller ones then: see in_micro_batches.
  bool returns_cache = false;
  bool in_micro_batches = false;  ///< is done in micro-batches that fit, and need no such return
  int64_t micro_batch_peak_bytes = 0;  ///< the peak then
  /// The micro-batch of the validations then; the batch: they fit whole.
  int64_t largest_validation_micro_batch = 0;
  int64_t largest_batch = 0;  ///< that fits, at most the training split; 0: not even one sample
  int64_t largest_micro_batch = 0;       ///< of this batch, accumulated; 0: none
  std::vector<std::string> recompute{};  ///< the blocks chosen for LearnerOptions::recompute auto
  std::vector<PlanSaving> savings{};     ///< other ways to need less
  /// The stages of a model that is divided over several cards, of which the figures above are the
  /// sums; else empty.
  std::vector<StagePlan> stages{};
  /// "meta": traced on meta tensors. "probe": real fits of few samples on this host, extrapolated
  /// to the batch; the largest micro-batch is then one that surely fits, and there are no savings.
  /// "none": the fit cannot be predicted, and its figures are 0.
  std::string method = "meta";
  std::string reason{};  ///< why not "meta"; empty for it
  /// Names what the figures do not contain, so that they are lower bounds: memory of a card, or all
  /// but the weights where these alone do not fit. Empty: everything is counted.
  std::vector<std::string> not_counted{};
  /// The lengths of the samples, where they differ: the figures are those of a batch as long as the
  /// longest, which every other batch stays below.
  std::optional<Padding> padding{};

  [[nodiscard]] bool known() const { return method != "none"; }  ///< whether there are figures
  /// Whether the fit would run, if need be with batches in parts.
  [[nodiscard]] bool runs() const { return fits || in_micro_batches; }
  /// Returns "peak 134.1 MiB (activations 100.0 MiB, ...) in backward, convolution_backward; fits
  /// ...".
  [[nodiscard]] std::string str() const;
};

}  // namespace tare
