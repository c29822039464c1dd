// The models whose steps are watched by the memory tracker in benchmarks.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench/hand_loop.h"

namespace tare::bench {

/// A small model that allocates as its large ones do.
struct Subject {
  std::string model;
  ModelOptions options;
  int64_t batch = 0;

  [[nodiscard]] DatasetPtr data(int64_t steps) const {
    torch::manual_seed(2);
    std::vector<int64_t> shape{steps * batch};
    shape.insert(shape.end(), options.sample_shape.begin(), options.sample_shape.end());
    const auto classes = options.classes;
    if (model == "gpt")
      return tensor_dataset(torch::randint(classes, shape), torch::randint(classes, shape));
    return tensor_dataset(torch::rand(shape), torch::randint(classes, {steps * batch}));
  }
  void fit(const DatasetPtr& set) const {
    torch::manual_seed(1);
    LearnerOptions o = same_training();
    o.batch = batch;
    Learner learner(models::make(model, options), {.train = set}, std::move(o));
    learner.fit(1, {.lr = 0.01, .schedule = {.kind = "constant"}});
  }
};

inline std::vector<Subject> small_subjects() {
  return {{"mlp", {.sample_shape = {64}, .hidden = {128}}, 32},
          {"resnet9", {.sample_shape = {1, 8, 8}, .width = 4}, 16},
          {"gpt", {.classes = 64, .sample_shape = {16}, .width = 32, .layers = 2, .heads = 4}, 8}};
}

}  // namespace tare::bench
