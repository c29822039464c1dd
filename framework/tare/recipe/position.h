// Position: what a run is, its finished phases and how often it was resumed, stored in every
// checkpoint of it. Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tare/callback/callback.h"
#include "tare/data/datasets.h"
#include "tare/report/run_files.h"

namespace tare {

/// Identifies the recipe and the data that a run must share with the run that it continues.
struct Origin {
  struct Data {
    std::string description{};
    datasets::Identity identity{};
  };
  std::string recipe{};      ///< what matters of it, as YAML; empty: not known
  std::vector<Data> data{};  ///< of each phase; empty: not known
};

/// Is a callback only so that its state is saved with the weights: the two can never disagree.
class Position final : public Callback {
 public:
  explicit Position(Origin origin = {}) : origin_(std::move(origin)) {}
  [[nodiscard]] const std::vector<PhaseReport>& done() const { return done_; }
  /// Returns how often the run was resumed.
  [[nodiscard]] int64_t resumes() const { return resumes_; }
  void add(PhaseReport phase) { done_.push_back(std::move(phase)); }
  /// Notes the phase that changes the weights from now on.
  void begin(size_t phase) { phase_ = static_cast<int64_t>(phase); }
  /// Returns the index of the phase that has changed the weights last; unset: not known.
  [[nodiscard]] std::optional<size_t> phase() const {
    return phase_ < 0 ? std::nullopt : std::optional(static_cast<size_t>(phase_));
  }

  [[nodiscard]] std::string name() const override { return "recipe"; }
  [[nodiscard]] std::string state() const override;
  /// Takes the finished phases, and counts one resume more than the state has; the origin stays.
  /// Throws FormatError for what is not a state().
  void load_state(const std::string& json) override;
  /// Returns the origin in a state(); an empty one in that of an earlier version. Throws as above.
  [[nodiscard]] static Origin origin_in(const std::string& json);

 private:
  Origin origin_;
  std::vector<PhaseReport> done_;
  int64_t resumes_ = 0;
  int64_t phase_ = -1;
};

}  // namespace tare
