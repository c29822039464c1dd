// Where a recipe is: the phases that are done. A part of every checkpoint of its run.
#pragma once

#include <string>
#include <vector>

#include "tare/callback/callback.h"
#include "tare/recipe/run.h"

namespace tare {

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
