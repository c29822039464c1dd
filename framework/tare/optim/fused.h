// FusedOptimizer: what the optimizers on ATen's fused kernels have in common: state by parameter,
// and tensor lists for the kernels. Internal.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tare/optim/optimizer.h"

namespace tare {

class StateIndex;

/// Lists of the same length for one kernel call: tensors of one dtype on one device.
struct FusedLists {
  std::vector<at::Tensor> parameters, gradients;
  std::vector<at::Tensor> steps;     ///< float32 scalars: this step, from 1
  std::vector<at::Tensor> products;  ///< float32 scalars that start from 1, see FusedState
  std::array<std::vector<at::Tensor>, 2> buffers;
  std::array<std::vector<at::Tensor>, 2> scales;  ///< of the blocks of 8-bit buffers
};

/// Counts the elements that have one scale in an 8-bit buffer.
inline constexpr int64_t kStateBlock = 256;

/// Describes the state that a kind of optimizer keeps for each parameter.
struct FusedState {
  std::vector<std::string> buffers{};  ///< at most two tensors like the parameter, from zeros
  bool counts = false;                 ///< a step counter, the float32 scalar "step"
  std::string product{};               ///< a float32 scalar that starts from 1; empty: none
  /// Whether each buffer is of uint8, with a float32 "<buffer>_scale" for each kStateBlock elements
  /// in the order of the memory.
  bool eight_bit = false;

  bool operator==(const FusedState&) const = default;
};

/// Keeps the state; a derived class names its buffers and calls its kernel.
class FusedOptimizer : public Optimizer {
 public:
  /// Keeps `kept` for each parameter, or what kept_of() says of it. Throws ConfigError for a
  /// parameter whose elements do not fill its memory without holes.
  FusedOptimizer(std::vector<ParameterGroup> groups, FusedState kept);

  void step() final;
  [[nodiscard]] bool steps_atomically() const override { return true; }
  [[nodiscard]] bool steps_singly() const final { return true; }
  void step_one(const at::Tensor& parameter) final;
  void prepare() final;
  void clear() final;
  [[nodiscard]] std::vector<NamedTensor> state() const final;
  void check_state(const std::vector<NamedTensor>& state) final;
  std::vector<std::string> load_state(const std::vector<NamedTensor>& state) final;
  StateChange set_groups(std::vector<ParameterGroup> groups) final;

 protected:
  /// Whether the parameters of this group have state at all.
  [[nodiscard]] virtual bool needs_state(const ParameterGroup&) const { return true; }
  /// Returns the state of a parameter; it depends on nothing that changes between steps.
  [[nodiscard]] virtual const FusedState& kept_of(const Parameter&) const { return kept_; }
  /// Returns every state that kept_of() may return.
  [[nodiscard]] virtual std::vector<FusedState> all_kept() const { return {kept_}; }
  /// Makes one kernel call for parameters with one state; the step counters have been raised. Must
  /// not allocate where steps_atomically().
  virtual void launch(const ParameterGroup& group, FusedLists& lists) = 0;

 private:
  struct Slot {  // the state of one parameter; undefined tensors before it is allocated
    std::array<at::Tensor, 2> buffers, scales;
    at::Tensor step, product;
    [[nodiscard]] bool empty() const { return !buffers[0].defined(); }
    [[nodiscard]] int64_t bytes() const;
    [[nodiscard]] std::array<const at::Tensor*, 6> all() const {
      return {&buffers[0], &buffers[1], &scales[0], &scales[1], &step, &product};
    }
    void assign(const std::vector<const NamedTensor*>& entries);  // copies; none: as allocated
  };
  struct Bucket {  // parameters of one group with the same dtype, device and state
    size_t group = 0;
    bool with_state = false;
    FusedState kept;
    FusedLists lists;
  };

  struct Found {                                             // of a saved state
    std::vector<std::vector<const NamedTensor*>> entries{};  // of each slot; empty: it is fresh
    std::vector<std::string> fresh{};
  };
  [[nodiscard]] Found find(const std::vector<NamedTensor>& state);
  void check_layout() const;
  [[nodiscard]] bool fits(const Slot& slot, const Parameter& parameter) const;
  [[nodiscard]] bool ready() const;
  [[nodiscard]] Slot allocate(const Slot& old, const Parameter& parameter) const;
  struct Place {  // of a parameter in the buckets' lists
    size_t bucket = 0, index = 0;
  };
  void fill_buckets();
  Bucket& bucket_for(size_t group, const Parameter& parameter, bool with_state);
  void align_gradients();
  static void align_gradient(const Parameter& parameter);
  void step_bucket(Bucket& bucket);
  [[nodiscard]] static FusedLists with_gradient(const FusedLists& all);
  [[nodiscard]] std::vector<const NamedTensor*> entries_of(const Parameter& parameter,
                                                           const StateIndex& index) const;

  /// Returns the names of what a state consists of, in the order of Slot::all().
  [[nodiscard]] static std::vector<std::string> names(const FusedState& kept);

  FusedState kept_;
  std::vector<Slot> slots_;  // in the order of the groups' parameters
  std::vector<Bucket> buckets_;
  std::unordered_map<const void*, Place> places_;  // by the parameter's TensorImpl
};

}  // namespace tare
