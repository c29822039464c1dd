// A Learner whose fits draw equal numbers.
#pragma once

#include <torch/utils.h>

#include <memory>
#include <utility>

#include "learner/fixture.h"

namespace tare::testing {

/// Makes a Learner on the points of the fixture, and seeds the generator of the host.
inline std::unique_ptr<Learner> make_seeded(LearnerOptions options, uint64_t seed = 1) {
  auto learner = std::make_unique<Learner>(make_net(seed), split_points(), std::move(options));
  torch::manual_seed(3);
  return learner;
}

}  // namespace tare::testing
