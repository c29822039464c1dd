// LeakWatch: warns of memory that grows with every epoch and that no object answers for.
#pragma once

#include <c10/core/Device.h>

#include <array>
#include <map>
#include <string>
#include <vector>

#include "tare/callback/callback.h"
#include "tare/memory/call_site.h"

namespace tare {

/// Bytes in no ledger that rose in each of the last epochs.
struct Growth {
  c10::Device device = c10::kCPU;
  std::string phase{};      ///< in which they were allocated
  memory::CallSite site{};  ///< that allocated them; unknown outside memory::CallSites
  /// Before the first of these epochs and after each of them.
  std::vector<int64_t> bytes{};

  /// "1.0 MiB, 2.0 MiB, 3.0 MiB, 4.0 MiB on cpu, born in phase forward at /home/me/train.cpp:41".
  [[nodiscard]] std::string str() const;
};

/// At the end of each epoch it adds up the blocks of the Learner's device that are in no ledger of
/// a living Accountable, by the phase that allocated them and, inside memory::CallSites, by the
/// line. What rose in each of the last kEpochs epochs is a warning, once a fit. A fit of fewer
/// epochs shows nothing. An epoch costs a walk over the live blocks. Keeps no tensor.
class LeakWatch final : public Callback {
 public:
  static constexpr size_t kEpochs = 3;

  [[nodiscard]] std::string name() const override { return "leak_watch"; }
  Action before_fit(FitContext& context) override;
  Action after_epoch(FitContext& context) override;

  /// What was warned of in the last fit, in order.
  [[nodiscard]] const std::vector<Growth>& found() const { return found_; }

 private:
  struct Origin {
    uint32_t phase = 0, stack = 0;
    // NOLINTNEXTLINE(modernize-use-nullptr): the linter means the 0 of the generated comparison.
    friend auto operator<=>(const Origin&, const Origin&) = default;
  };
  /// Bytes after the last epochs, the newest last.
  using Series = std::array<int64_t, kEpochs + 1>;

  void sample(c10::Device device);
  [[nodiscard]] std::vector<Growth> grown(c10::Device device) const;

  std::map<Origin, Series> series_;
  size_t epochs_ = 0;
  std::vector<Growth> found_;
};

}  // namespace tare
