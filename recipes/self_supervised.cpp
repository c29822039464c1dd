// Self-supervised pre-training: a body learns from pictures without labels by saying how far each
// is turned, after Gidaris et al., "Unsupervised Representation Learning by Predicting Image
// Rotations", 2018. Then a head learns the classes from few labels.
//
// Run: build/bin/self_supervised [SAMPLES]     Expect: 94 % with ten labels for each class, 79 %
// without the pre-training.
#include <tare/runtime/exit_code.h>
#include <tare/tare.h>
#include <torch/nn.h>

#include <iostream>
#include <string>

#include "measured.h"

namespace {

using namespace tare;

constexpr int64_t kTurns = 4, kLabelsOfAClass = 10;

LearnerOptions options_for(const std::string& name) {
  return {.metrics = {"accuracy"},
          .device = "cpu",
          .batch = 25,
          .folder = "runs/self_supervised/" + name,
          .progress = false};
}

Model model_of(int64_t classes, const std::string& weights = {}) {
  torch::manual_seed(1);
  return models::make(
      "resnet9", {.classes = classes, .sample_shape = {1, 28, 28}, .weights = weights, .width = 8});
}

Transforms seen_as() { return {Normalise{.mean = {0.13}, .std = {0.31}}, Shift{.pixels = 2}}; }

/// Every picture in each of the four turns, which is its label.
DatasetPtr turned(const at::Tensor& pictures) {
  std::vector<at::Tensor> all, labels;
  for (int64_t turn = 0; turn < kTurns; ++turn) {
    all.push_back(torch::rot90(pictures, turn, {2, 3}));
    labels.push_back(torch::full({pictures.size(0)}, turn, torch::kLong));
  }
  return transformed(tensor_dataset(torch::cat(all), torch::cat(labels)), seen_as());
}

/// Fine-tunes on few labels: the head first, then all layers. Returns the accuracy.
double fine_tuned(const Splits& labelled, const std::string& name, Model model) {
  Learner learner(std::move(model), labelled, options_for(name));
  learner.fine_tune(20, {.frozen_epochs = 5, .lr = 1e-2});
  return learner.validate().metrics.at(0).value;
}

}  // namespace

int main(int argc, char** argv) try {
  init();
  const Measured measured;
  const int64_t samples = argc > 1 ? std::stoll(argv[1]) : 4000;
  const DatasetPtr digits = generated_digits({.count = samples, .style = "written"});
  const Splits halves = split(digits, {.train = 0.5, .valid = 0.5}, 1, {.stratify = true});
  const Batch pictures = get_all(*halves.train);

  Learner pretext(model_of(kTurns), split(turned(pictures.input())), options_for("pretext"));
  pretext.fit_one_cycle(4, {.max_lr = 1e-2});
  std::cout << "turns: accuracy " << pretext.validate().metrics.at(0).value << '\n';
  pretext.export_to("runs/self_supervised/pretext.tare", {.destroy = true});

  const auto few = first_of_each_class(halves.train, 10 * kLabelsOfAClass);
  const Splits labelled{
      .train = transformed(tensor_dataset(pictures.input().index_select(0, torch::tensor(few)),
                                          pictures.target().index_select(0, torch::tensor(few))),
                           seen_as()),
      .valid = transformed(halves.valid, seen_as())};
  std::cout << "from scratch: accuracy " << fine_tuned(labelled, "scratch", model_of(10)) << '\n'
            << "pre-trained: accuracy "
            << fine_tuned(labelled, "tuned", model_of(10, "runs/self_supervised/pretext.tare"))
            << '\n';
} catch (...) {
  return tare::report_error(std::current_exception());
}
