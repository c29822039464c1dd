// Small models of the zoo with data and options, by names such as "gpt_recomputed_bf16"; "plain" is
// without dropout.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "learner/fixture.h"
#include "tare/data/collate.h"
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
    ModelOptions options{.classes = kClasses, .dropout = 0.2};
    std::string family = "mlp";
    if (is("resnet9") || is("convnet")) {
      family = is("convnet") ? "convnet" : "resnet9";
      options.sample_shape = {1, 8, 8}, options.width = 2;
    } else if (is("gpt")) {
      family = "gpt";
      options = {
          .classes = 16, .sample_shape = {8}, .width = 8, .layers = 2, .heads = 2, .dropout = 0.1};
    } else if (is("lstm")) {
      family = "lstm";
      options.sample_shape = {9}, options.width = 8, options.layers = 2;
    } else {
      options.sample_shape = {8}, options.hidden = {32, 16};
    }
    if (is("plain")) options.dropout = 0;
    return models::make(family, options);
  }

  [[nodiscard]] DatasetPtr set(int64_t n, uint64_t seed) const {
    auto generator = at::detail::createCPUGenerator(seed);
    const auto classes = torch::arange(n) % kClasses;
    if (is("resnet9") || is("convnet"))
      return tensor_dataset(torch::empty({n, 1, 8, 8}).normal_(0, 1, generator), classes);
    if (is("gpt")) {
      const auto tokens = torch::randint(16, {n, 8}, generator);
      return tensor_dataset(tokens, tokens.roll(-1, 1));
    }
    if (is("lstm")) {
      std::vector<Batch> texts;
      for (int64_t i = 0; i < n; ++i)
        texts.push_back({torch::randint(256, {1 + i % 9}, generator, torch::kLong), classes[i]});
      return sample_dataset(texts, pad());
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
