// Small images with a model for them, and the message of a refusal.
#pragma once

#include <functional>
#include <string>

#include "learner/state.h"
#include "tare/base/error.h"
#include "tare/model/registry.h"

namespace tare::testing {

inline Splits images(int64_t n = 32) {
  auto generator = at::detail::createCPUGenerator(3);
  const auto input = torch::empty({n, 1, 12, 12}).normal_(0, 1, generator);
  return {.train = tensor_dataset(input, torch::arange(n) % kClasses),
          .valid = tensor_dataset(input.clone(), torch::arange(n) % kClasses)};
}

inline Model resnet() {
  torch::manual_seed(1);
  return models::make("resnet9", {.classes = kClasses, .sample_shape = {1, 12, 12}, .width = 4});
}

/// Returns what a call is refused with, or "accepted".
inline std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace tare::testing
