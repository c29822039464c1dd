// LeakWatch: warns of memory that grows with every epoch and that no object answers for.
#pragma once

#include <c10/core/Device.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tare/callback/callback.h"
#include "tare/memory/call_site.h"

namespace tare {

/// Reports bytes in no ledger that rose in each of the last epochs, or quarters of a short fit.
struct Growth {
  c10::Device device = c10::kCPU;  ///< where the bytes are
  std::string phase{};             ///< in which they were allocated
  memory::CallSite site{};         ///< that allocated them; unknown outside memory::CallSites
  /// The bytes before the first of these epochs or quarters, and after each of them.
  std::vector<int64_t> bytes{};

  /// Returns "1.0 MiB, 2.0 MiB, 3.0 MiB, 4.0 MiB on cpu, born in phase forward at
  /// /home/me/train.cpp:41".
  [[nodiscard]] std::string str() const;
};

/// Reports a graph of an earlier batch that is still alive when the next one begins.
struct KeptGraph {
  c10::Device device = c10::kCPU;  ///< where the graph's tensors are
  int64_t step = 0;                ///< of the fit, from 1
  int64_t bytes = 0;  ///< in no ledger, allocated in that step; at least what the graph holds

  [[nodiscard]] std::string str() const;  ///< returns one line, as in the warning
};

/// Adds up, at the end of each epoch, the blocks of the Learner's device that are in no ledger of
/// a living Accountable, by the phase that allocated them and, inside memory::CallSites, by the
/// line. What rose in each of the last kEpochs epochs is a warning, once a fit. A fit of fewer
/// epochs is looked at in quarters, and what rose in each of the last three by kLargeBytes or more
/// together is a warning. Each look costs a walk over the live blocks.
///
/// A loss or an output whose graph is alive when the next batch begins is a warning at once:
/// somebody keeps it, or a tensor made from it, without detach(). Keeps no tensor.
class LeakWatch final : public Callback {
 public:
  /// The number of consecutive epochs, or quarters of a short fit, in each of which the bytes must
  /// have risen.
  static constexpr size_t kEpochs = 3;
  static constexpr int64_t kLargeBytes = 1 << 20;  ///< least growth that a short fit warns of

  LeakWatch();
  ~LeakWatch() override;

  [[nodiscard]] std::string name() const override { return "leak_watch"; }
  Action before_fit(FitContext& context) override;
  Action before_batch(FitContext& context) override;
  Action after_loss(FitContext& context) override;
  Action after_batch(FitContext& context) override;
  Action after_epoch(FitContext& context) override;
  Action after_fit(FitContext& context) override;

  /// Returns what was warned of in the last fit, in order.
  [[nodiscard]] const std::vector<Growth>& found() const { return found_; }
  /// Returns the first graph that was kept in the last fit.
  [[nodiscard]] const std::optional<KeptGraph>& kept_graph() const { return kept_graph_; }

 private:
  struct Origin {
    uint32_t phase = 0, stack = 0;
    // NOLINTNEXTLINE(modernize-use-nullptr): the linter means the 0 of the generated comparison.
    friend auto operator<=>(const Origin&, const Origin&) = default;
  };
  /// Holds the bytes after the last epochs, the newest last.
  using Series = std::array<int64_t, kEpochs + 1>;

  struct Graphs;

  void sample(c10::Device device);
  void warn(c10::Device device, bool short_fit);
  void look_at_graphs(const FitContext& context);
  [[nodiscard]] std::vector<Growth> grown(c10::Device device) const;

  std::map<Origin, Series> series_;
  size_t looks_ = 0;  // since the baseline
  int64_t batches_ = 0;
  std::vector<Growth> found_;
  std::unique_ptr<Graphs> graphs_;  // of the batch under way
  std::optional<KeptGraph> kept_graph_;
};

}  // namespace tare
