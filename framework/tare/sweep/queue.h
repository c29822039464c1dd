// The runs that wait, and which of them is next. Internal.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tare/sweep/placement.h"
#include "tare/sweep/trial.h"

namespace tare::sweep {

class Queue {
 public:
  /// Returns the bytes that a run will take on each of its devices; 0: they are not known. Throws
  /// Error for settings that the recipe does not take.
  using Ask = std::function<int64_t(const Trial&)>;
  using Refuse = std::function<void(const Trial&, const std::string& why)>;

  struct Start {
    Trial trial{};
    std::vector<size_t> devices{};
    int64_t bytes = 0;  ///< to reserve on each of them
  };

  void add(Trial trial) { waiting_.push_back({std::move(trial)}); }
  void add_first(Trial trial) { waiting_.insert(waiting_.begin(), {std::move(trial)}); }
  [[nodiscard]] bool empty() const { return waiting_.empty(); }
  [[nodiscard]] size_t size() const { return waiting_.size(); }
  /// Makes the queue hold exactly these runs, in their order; runs that it already had keep what
  /// they asked for.
  void replace(std::vector<Trial> waiting);

  /// Takes out the next run that can start, by next_start(), on `count` devices. `unknown` returns
  /// the bytes to reserve for a run whose memory is unknown, and is called anew each time. Asks for
  /// no more runs than it takes, each once; runs for which it cannot be determined are removed and
  /// passed to `refuse`.
  [[nodiscard]] std::optional<Start> next(const std::vector<launch::DeviceSlot>& devices,
                                          const std::vector<Placed>& running, size_t count,
                                          const Ask& unknown, const Ask& ask, const Refuse& refuse);

 private:
  struct Queued {
    Trial trial;
    std::optional<int64_t> bytes{};  // unset: not asked yet; 0: unknown
    int64_t passed_over = 0;
  };
  std::vector<Queued> waiting_;
};

}  // namespace tare::sweep
