// A scale for memory: everything between construction and finish() is weighed, then given back.
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
#include "tare/memory/accountable.h"
#include "tare/memory/backend.h"

namespace tare {

struct ExperimentOptions {
  bool enabled =
      true;  ///< false: weighs, purges and prints nothing; owned objects still die at finish()
  std::vector<c10::Device>
      devices{};  ///< to weigh; empty: the host and every device that an attended object uses
  std::ostream* out =
      &std::cout;  ///< for the banner, and the report of a finish at scope end; nullptr: none
};

/// Weighs a stage of work. Its baseline is taken when the devices are warm, so context and library
/// memory never count.
///
/// finish() freezes what was consumed, purges the attended objects, destroys the owned ones in
/// reverse, empties caches and reports what came back. The end of the scope, by an exception too,
/// finishes what was not finished: exactly one finish an experiment. Experiments may nest and
/// overlap. Neither copied nor moved; std::optional::emplace finishes the old experiment before the
/// new one takes its baseline. Not thread-safe; blocks that other threads allocate in the meantime
/// are weighed too.
class Experiment {
 public:
  explicit Experiment(std::string name, ExperimentOptions options = {});
  /// Attends one object, or several: Experiment stage("both", {teacher, student}).
  Experiment(std::string name, Accountable& attended, ExperimentOptions options = {});
  Experiment(std::string name, std::initializer_list<std::reference_wrapper<Accountable>> attended,
             ExperimentOptions options = {});
  /// Finishes, and prints the report, unless finish() was called.
  ~Experiment();
  Experiment(const Experiment&) = delete;
  Experiment& operator=(const Experiment&) = delete;

  /// Makes an object that the experiment owns. The reference is good until finish(). Throws
  /// StateError after it, ConfigError for a name that is taken.
  template <class T, class... Args>
  T& emplace(const std::string& owned_name, Args&&... args);

  /// Purges the object at finish(), if it lives then. A device it uses that was not weighed yet is
  /// weighed from now on, unless the options named the devices.
  void attend(Accountable& object);

  /// What a tensor's storage holds at finish() is no leak. Does not keep the tensor alive.
  void keep(const at::Tensor& tensor);
  /// An owned object outlives finish() and dies with the experiment; storages that were allocated
  /// while it was made are no leak. Throws ConfigError where there is no such name.
  void keep(const std::string& owned_name);

  /// Consumed, peak and available now, per device; after finish() what the report says. No side
  /// effect.
  [[nodiscard]] std::vector<DeviceReport> data() const;

  /// See above. A second call returns the same report and does nothing. An attended object that
  /// cannot be purged now is listed with the reason.
  ExperimentReport finish();
  [[nodiscard]] bool finished() const { return report_.has_value(); }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  struct Scale {
    Scale(c10::Device device);
    [[nodiscard]] DeviceReport read() const;

    memory::DeviceBackend& backend;
    memory::Usage start;
    uint64_t mark = 0;  ///< number of the last block born before
    memory::PeakScope peak;
  };
  struct Attended {
    Accountable* object;
    uint64_t id;
  };
  /// Number of the last block born before, or at the end of, something; one per scale.
  using Marks = std::vector<uint64_t>;
  struct Owned {
    std::string name;
    std::shared_ptr<void> object;
    Marks first, last;  ///< blocks of its construction
    bool kept = false;
  };

  void weigh(c10::Device device);
  void check_new_name(const std::string& owned_name) const;
  [[nodiscard]] Marks marks() const;
  void print_banner() const;
  void freeze(ExperimentReport& report) const;
  void purge_attended(ExperimentReport& report) const;
  void destroy_owned(ExperimentReport& report);
  void reclaim(ExperimentReport& report) const;
  void find_leaks(ExperimentReport& report) const;
  [[nodiscard]] bool kept(size_t scale, const memory::LiveBlock& block) const;

  std::string name_;
  ExperimentOptions options_;
  std::chrono::steady_clock::time_point begin_;
  std::vector<std::unique_ptr<Scale>> scales_;
  std::vector<Attended> attended_;
  std::vector<Owned> owned_;
  std::vector<std::pair<c10::Device, uint64_t>> kept_blocks_;
  std::optional<ExperimentReport> report_;
};

template <class T, class... Args>
T& Experiment::emplace(const std::string& owned_name, Args&&... args) {
  check_new_name(owned_name);
  Owned owned{owned_name, nullptr, marks(), {}};
  auto object = std::make_shared<T>(std::forward<Args>(args)...);
  T& reference = *object;
  owned.object = std::move(object);
  owned.last = marks();
  owned_.push_back(std::move(owned));
  return reference;
}

}  // namespace tare
