// Small models of the zoo with data and options, by names such as "gpt_recomputed_bf16".
#pragma once

#include <string>
#include <string_view>

#include "learner/fixture.h"
#include "tare/model/registry.h"

namespace tare::testing {

class Zoo {
 public:
  explicit Zoo(std::string_view name) : name_(name) {}

  [[nodiscard]] bool is(std::string_view part) const {
    return name_.find(part) != std::string_view::npos;
  }

  [[nodiscard]] Model model() const {
    torch::manual_seed(1);
    if (is("resnet9"))
      return models::make(
          "resnet9", {.classes = kClasses, .sample_shape = {1, 8, 8}, .width = 2, .dropout = 0.2});
    if (is("gpt"))
      return models::make("gpt", {.classes = 16,
                                  .sample_shape = {8},
                                  .width = 8,
                                  .layers = 2,
                                  .heads = 2,
                                  .dropout = 0.1});
    return models::make(
        "mlp", {.classes = kClasses, .sample_shape = {8}, .hidden = {32, 16}, .dropout = 0.2});
  }

  [[nodiscard]] DatasetPtr set(int64_t n, uint64_t seed) const {
    auto generator = at::detail::createCPUGenerator(seed);
    const auto classes = torch::arange(n) % kClasses;
    if (is("resnet9"))
      return tensor_dataset(torch::empty({n, 1, 8, 8}).normal_(0, 1, generator), classes);
    if (is("gpt")) {
      const auto tokens = torch::randint(16, {n, 8}, generator);
      return tensor_dataset(tokens, tokens.roll(-1, 1));
    }
    return tensor_dataset(torch::empty({n, 8}).normal_(0, 1, generator), classes);
  }

  [[nodiscard]] LearnerOptions options(const TempDir& folder) const {
    LearnerOptions options = quiet(folder);
    if (is("recomputed")) options.recompute = {"all"};
    options.step_in_backward = is("step_in_backward");
    for (const char* precision : {"fp16", "bf16", "bf16-true"})
      if (is(precision)) options.precision = precision;
    return options;
  }

 private:
  std::string name_;
};

}  // namespace tare::testing
