// The state of a Learner, for bit comparison.
#pragma once

#include <algorithm>
#include <vector>

#include "learner/fixture.h"
#include "tare/train/rng.h"

namespace tare::testing {

/// Everything that a step changes: weights, buffers, optimizer state, random generators.
struct State {
  std::vector<torch::Tensor> tensors{};
  [[nodiscard]] bool operator==(const State& other) const {
    return std::ranges::equal(tensors, other.tensors, [](const auto& a, const auto& b) {
      return a.defined() == b.defined() && torch::equal(a, b);
    });
  }
};

inline State capture(Learner& learner) {
  State state;
  const auto add = [&](const std::vector<NamedTensor>& named) {
    for (const auto& t : named) state.tensors.push_back(t.tensor.detach().clone());
  };
  add(learner.model().state());
  add(learner.optimizer().state());
  add(rng_state(learner.device()));
  return state;
}

}  // namespace tare::testing
