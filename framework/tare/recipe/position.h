// Position: the finished phases of a recipe, stored in every checkpoint of its run. Internal.
#pragma once

#include <string>
#include <vector>

#include "tare/callback/callback.h"
#include "tare/recipe/run.h"

namespace tare {

/// A callback only so that its state is saved with the weights: the two can never disagree.
class Position final : public Callback {
 public:
  [[nodiscard]] const std::vector<PhaseReport>& done() const { return done_; }
  void add(PhaseReport phase) { done_.push_back(std::move(phase)); }

  [[nodiscard]] std::string name() const override { return "recipe"; }
  [[nodiscard]] std::string state() const override;
  void load_state(const std::string& json) override;

 private:
  std::vector<PhaseReport> done_;
};

}  // namespace tare
