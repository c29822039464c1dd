// Experiment: measures the memory of a stage of work, then frees it and reports what came back.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <concepts>
#include <functional>
#include <initializer_list>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tare/experiment/experiment_report.h"
#include "tare/experiment/listed_tensors.h"
#include "tare/memory/accountable.h"
#include "tare/memory/backend.h"
#include "tare/memory/call_stack.h"

namespace tare {

/// Sets what an Experiment measures, prints and purges.
struct ExperimentOptions {
  /// False: measures, purges and prints nothing; owned objects are still destroyed at finish().
  bool enabled = true;
  /// Devices to measure; empty: the host and every device that an attended object uses.
  std::vector<c10::Device> devices{};
  /// Receives the opening line, and the report if the destructor finishes; nullptr: print nothing.
  std::ostream* out = &std::cout;
  /// Sets how finish() purges attended objects.
  PurgeOptions purge{};
  /// Whether to gather call stacks, so that leaks are grouped by the line that allocated them.
  /// Slower: see docs/memory.md.
  bool call_sites = false;
};

/// Measures a stage of work against a baseline taken at construction, after the devices are warmed
/// up, so that context and library memory never count.
///
/// finish() records what was consumed, purges the *attended* objects (those given to it), destroys
/// the *owned* ones (made by emplace()) in reverse order, empties caches and reports what came
/// back. The destructor finishes if finish() was not called, also after an exception. Experiments
/// may nest and overlap. Neither copied nor moved; std::optional::emplace finishes the old
/// experiment before the new one takes its baseline. Not thread-safe; allocations of other threads
/// in the meantime are measured too.
class Experiment {
 public:
  /// Begins to measure; nothing is attended. `name`: for the report.
  explicit Experiment(std::string name, ExperimentOptions options = {});
  /// Attends one object, or several: Experiment stage("both", {teacher, student}). They may die
  /// before the experiment.
  Experiment(std::string name, Accountable& attended, ExperimentOptions options = {});
  /// Attends several objects, which may die before the experiment.
  Experiment(std::string name, std::initializer_list<std::reference_wrapper<Accountable>> attended,
             ExperimentOptions options = {});
  /// Finishes and prints the report, unless finish() was called. Does not throw.
  ~Experiment();
  Experiment(const Experiment&) = delete;
  Experiment& operator=(const Experiment&) = delete;

  /// Makes an object that the experiment owns. The reference is valid until finish(). Throws
  /// StateError after finish(), ConfigError for a name that is taken.
  template <class T, class... Args>
  T& emplace(const std::string& owned_name, Args&&... args);

  /// Purges the object at finish(), if it is still alive. A device it uses that was not measured
  /// yet is measured from now on, unless the options name the devices.
  void attend(Accountable& object);

  /// Excludes the tensor's storage from the report of leaks, which lists it as kept, with its
  /// bytes, where it is alive at finish(). Does not keep the tensor alive. Throws StateError after
  /// finish().
  void keep(const at::Tensor& tensor);
  /// Keeps the owned object, which outlives finish() and is destroyed with the experiment; its
  /// tensors are not reported as leaks. Those are the tensors that its type lists (see
  /// listed_tensors.h) and what was allocated while it was made. What was allocated later, while an
  /// object is kept whose type lists nothing, is reported as unclear, and the destructor warns of
  /// what is left of it when the object is gone. Throws ConfigError for an unknown name, StateError
  /// after finish().
  void keep(const std::string& owned_name);

  /// Returns the consumed, peak and available bytes of each device at this moment; after finish()
  /// those of the report.
  [[nodiscard]] std::vector<DeviceReport> data() const;

  /// Ends the experiment as described at the class. A second call returns the same report and does
  /// nothing. An attended object that cannot be purged is listed with the reason. Waits for the
  /// devices.
  ExperimentReport finish();
  /// Whether finish() has been called.
  [[nodiscard]] bool finished() const { return report_.has_value(); }
  [[nodiscard]] const std::string& name() const { return name_; }  ///< as it was given

 private:
  /// Holds the figures of a device at the start, which later ones are compared with.
  struct DeviceBaseline {
    DeviceBaseline(c10::Device device);
    [[nodiscard]] DeviceReport read() const;

    memory::DeviceBackend& backend;
    memory::Usage start;
    uint64_t mark = 0;  ///< number of the last block allocated before
    memory::PeakScope peak;
  };
  struct Attended {
    Accountable* object;
    uint64_t id;
  };
  /// Holds the number of the last block at some moment, one for each baseline.
  using Marks = std::vector<uint64_t>;
  struct Owned {
    std::string name;
    std::shared_ptr<void> object;
    Marks first, last;  ///< blocks of its construction
    /// Adds the object's tensors to a ledger; empty where its type does not list them.
    std::function<void(Ledger&)> account;
    bool kept = false;
  };
  using Block = std::pair<c10::Device, uint64_t>;  ///< a block's device and number

  struct KeptBlock {
    Block block;
    std::string sizes{};  ///< of the tensor, for the report: "[500]"
  };

  /// Adds the baseline of a device that has none.
  void start_measuring(c10::Device device);
  void check_new_name(const std::string& owned_name) const;
  [[nodiscard]] Marks marks() const;
  void print_banner() const;
  void freeze(ExperimentReport& report) const;
  void purge_attended(ExperimentReport& report) const;
  void destroy_owned(ExperimentReport& report);
  void reclaim(ExperimentReport& report) const;
  void find_leaks(ExperimentReport& report);
  [[nodiscard]] Ledger answered() const;
  /// Lists the block in the report and returns true if it is of a tensor that keep() was given.
  bool list_kept(size_t baseline, const memory::LiveBlock& block, ExperimentReport& report) const;
  [[nodiscard]] bool kept(size_t baseline, const memory::LiveBlock& block) const;
  [[nodiscard]] bool unclear(size_t baseline, const memory::LiveBlock& block) const;
  void warn_of_leaked_with_kept();

  std::string name_;
  ExperimentOptions options_;
  std::optional<memory::CallSites> call_sites_;
  std::chrono::steady_clock::time_point begin_;
  std::vector<std::unique_ptr<DeviceBaseline>> baselines_;
  std::vector<Attended> attended_;
  std::vector<Owned> owned_;
  std::vector<KeptBlock> kept_blocks_;
  std::vector<std::pair<c10::Device, std::vector<uint64_t>>> unclear_blocks_;  // numbers rise
  std::optional<ExperimentReport> report_;
};

template <class T, class... Args>
T& Experiment::emplace(const std::string& owned_name, Args&&... args) {
  check_new_name(owned_name);
  Owned owned{owned_name, nullptr, marks(), {}, {}};
  auto object = std::make_shared<T>(std::forward<Args>(args)...);
  T& reference = *object;
  if constexpr (detail::kListsTensors<T>)
    owned.account = [&reference](Ledger& all) { detail::list_tensors(reference, all); };
  owned.object = std::move(object);
  owned.last = marks();
  owned_.push_back(std::move(owned));
  return reference;
}

}  // namespace tare
