// What runs took that have ended, for those that no plan can tell of. Internal.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tare/sweep/store.h"

namespace tare::sweep {

class MeasuredPeaks {
 public:
  /// Equal for runs that need the same memory.
  using Signature = std::function<std::string(const Trial&)>;

  explicit MeasuredPeaks(Signature signature) : signature_(std::move(signature)) {}

  /// A trial that has ended, or one without a peak, which says nothing.
  void see(const Trial& trial);
  /// The highest peak of the runs like this one, else of all; 0: none has ended.
  [[nodiscard]] int64_t of(const Trial& trial);

 private:
  [[nodiscard]] const std::string& signature_of(const Trial& trial);

  Signature signature_;
  std::vector<Trial> unread_;  // signatures are asked only if somebody wants to know
  std::map<int64_t, std::string> signatures_;  // by number
  std::map<std::string, int64_t> peaks_;       // by signature
  int64_t highest_ = 0;
};

}  // namespace tare::sweep
