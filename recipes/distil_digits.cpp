// Distillation after Hinton et al., "Distilling the Knowledge in a Neural Network", 2015: a small
// model learns what a large one says of pictures, softened by a temperature, and sees no label. The
// teacher speaks once, and its memory is back before the student trains.
//
// Run: build/bin/distil_digits [SAMPLES]     Expect: 99 % with labels and 98.8 % without, of a
// teacher with 99.9 %.
#include <tare/runtime/exit_code.h>
#include <tare/tare.h>
#include <torch/nn.h>

#include <iostream>
#include <string>

#include "measured.h"

namespace {

using namespace tare;

constexpr double kTemperature = 2;

LearnerOptions options_for(const std::string& name) {
  return {.metrics = {"accuracy"},
          .device = "cpu",
          .folder = "runs/distil_digits/" + name,
          .progress = false};
}

Model model_of(const std::string& family, int64_t width) {
  torch::manual_seed(1);
  return models::make(family, {.classes = 10, .sample_shape = {1, 16, 16}, .width = width});
}

/// Returns the loss of the student's outputs to those of the teacher. The square of the temperature
/// keeps the size of its gradient.
StepResult distilled_step(Model& student, const Batch& batch) {
  const at::Tensor outputs = student.forward(batch.input("picture"));
  const at::Tensor wanted = torch::softmax(batch.input("teacher") / kTemperature, 1);
  const at::Tensor loss = torch::nn::functional::cross_entropy(outputs / kTemperature, wanted);
  return {.loss = kTemperature * kTemperature * loss, .outputs = outputs};
}

/// Returns the samples with what the teacher says of each.
DatasetPtr taught_by(Learner& teacher, const Splits& data, Split split) {
  const Batch all = get_all(split == Split::train ? *data.train : *data.valid);
  const at::Tensor outputs = teacher.get_preds(split, {.activation = false}).outputs;
  return tensor_dataset({{"picture", all.input()}, {"teacher", outputs}},
                        {{"label", all.target()}});
}

double trained(const Splits& data, LearnerOptions options) {
  Learner student(model_of("convnet", 4), data, std::move(options));
  student.fit_one_cycle(8, {.max_lr = 1e-2});
  return student.validate().metrics.at(0).value;
}

}  // namespace

int main(int argc, char** argv) try {
  init();
  const Measured measured;
  const int64_t samples = argc > 1 ? std::stoll(argv[1]) : 4000;
  const Batch all = get_all(*generated_digits({.count = samples, .size = 16, .style = "written"}));
  const Splits digits =
      split(tensor_dataset(all.input().to(torch::kFloat) / 255, all.target()), {}, 1);
  Learner teacher(model_of("resnet9", 16), digits, options_for("teacher"));
  teacher.fit_one_cycle(6, {.max_lr = 1e-2});
  std::cout << "teacher: accuracy " << teacher.validate().metrics.at(0).value << '\n';
  const Splits taught{.train = taught_by(teacher, digits, Split::train),
                      .valid = taught_by(teacher, digits, Split::valid)};
  teacher.destroy();

  std::cout << "student with labels: accuracy " << trained(digits, options_for("alone")) << '\n';
  LearnerOptions options = options_for("taught");
  options.task.step = distilled_step;
  std::cout << "student of the teacher: accuracy " << trained(taught, std::move(options)) << '\n';
} catch (...) {
  return tare::report_error(std::current_exception());
}
