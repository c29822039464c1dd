// What waiting runs will take, from plans and from what others have taken. Internal.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tare/sweep/resources.h"

namespace tare::sweep {

class Needs {
 public:
  using Settings = std::vector<std::string>;
  using Predict = std::function<std::optional<int64_t>(const Settings&)>;
  using Signature = std::function<std::string(const Settings&)>;

  /// As Surroundings says. All must outlive it.
  Needs(const SweepOptions& sweep, const Rooms& rooms, const Predict& predict,
        const Signature& signature)
      : sweep_(sweep), rooms_(rooms), predict_(predict), signature_(signature) {}

  /// Bytes to reserve; 0: no plan tells. Throws Error for settings that the recipe does not take.
  [[nodiscard]] int64_t planned(const Trial& trial) const;
  /// Bytes to reserve where no plan tells: by the highest peak of runs with the same signature,
  /// else of any run; all of the largest room if none has ended.
  [[nodiscard]] int64_t measured(const Trial& trial);
  /// A trial that has ended.
  void see(const Trial& trial);

 private:
  [[nodiscard]] int64_t peak_of_kind(const Trial& trial);
  [[nodiscard]] const std::string& signature_of(const Trial& trial);

  const SweepOptions& sweep_;
  const Rooms& rooms_;
  const Predict& predict_;
  const Signature& signature_;
  std::vector<Trial> unread_;  // signatures are asked only if somebody wants to know
  std::map<int64_t, std::string> signatures_;  // by number
  std::map<std::string, int64_t> peaks_;       // by signature
  int64_t highest_ = 0;
};

}  // namespace tare::sweep
