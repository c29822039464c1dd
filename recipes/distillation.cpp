// Distillation: a small student learns from the scores of a large teacher beside the labels, after
// Hinton et al., "Distilling the Knowledge in a Neural Network", 2015.
//
// Run: build/bin/distillation [SAMPLES]     Expect: the taught student errs less than the one that
// learnt from the labels alone.
#include <tare/runtime/exit_code.h>
#include <tare/tare.h>
#include <torch/nn.h>

#include <iostream>
#include <memory>
#include <string>

namespace {

using namespace tare;

constexpr double kTemperature = 4, kShareOfTeacher = 0.7;

LearnerOptions options_for(const std::string& name) {
  return {.metrics = {"accuracy"},
          .device = "cpu",
          .batch = 32,
          .folder = "runs/distillation/" + name,
          .progress = false};
}

double accuracy_of(Learner& learner) { return learner.validate().metrics.at(0).value; }

/// The loss of labels, and of the distance to the teacher's scores, both softened. The teacher
/// scores the pictures as the student sees them, with their random changes.
Task taught_by(std::shared_ptr<Model> teacher) {
  const auto step = [teacher](Model& student, const Batch& batch) {
    const at::Tensor scores = student.forward(batch.input());
    at::Tensor wanted;
    {
      const torch::NoGradGuard no_graph;
      wanted = torch::softmax(teacher->forward(batch.input()) / kTemperature, 1);
    }
    const at::Tensor soft = torch::cross_entropy_loss(scores / kTemperature, wanted);
    const at::Tensor hard = torch::cross_entropy_loss(scores, batch.target());
    // The gradients of softened scores are smaller by the square of the temperature.
    const at::Tensor loss =
        kShareOfTeacher * kTemperature * kTemperature * soft + (1 - kShareOfTeacher) * hard;
    return StepResult{.loss = loss, .outputs = scores};
  };
  const auto account = [teacher](Ledger& ledger) {
    for (const auto& weight : teacher->state())
      ledger.add(Category::other, "teacher." + weight.name, weight.tensor);
  };
  return {.step = step, .account = account};
}

/// Trains a student of few weights, and returns its accuracy.
double train_student(const Splits& data, const std::string& name, Task task) {
  torch::manual_seed(2);  // both students begin alike
  LearnerOptions options = options_for(name);
  options.task = std::move(task);
  Learner student(models::make("convnet", {.sample_shape = {1, 28, 28}, .width = 2}), data,
                  std::move(options));
  student.fit_one_cycle(6, {.max_lr = 1e-2});
  return accuracy_of(student);
}

}  // namespace

int main(int argc, char** argv) try {
  init();
  const int64_t samples = argc > 1 ? std::stoll(argv[1]) : 4000;
  const DatasetPtr digits =
      transformed(generated_digits({.count = samples, .style = "written"}),
                  {Normalise{.mean = {0.13}, .std = {0.31}}, Shift{.pixels = 2}});
  const Splits data = split(digits, {.train = 0.5, .valid = 0.5}, 1, {.stratify = true});

  torch::manual_seed(1);
  Learner teacher(models::make("resnet9", {.sample_shape = {1, 28, 28}, .width = 16}), data,
                  options_for("teacher"));
  teacher.fit_one_cycle(6, {.max_lr = 1e-2});
  std::cout << "teacher: accuracy " << accuracy_of(teacher) << '\n';
  teacher.export_to("runs/distillation/teacher.tare", {.destroy = true});

  const auto alone = train_student(data, "alone", {});
  std::cout << "student, labels alone: accuracy " << alone << '\n';
  auto model = std::make_shared<Model>(make_model(open_bundle("runs/distillation/teacher.tare")));
  const auto taught = train_student(data, "taught", taught_by(std::move(model)));
  std::cout << "student, taught: accuracy " << taught << '\n'
            << "tracked at the end: " << memory::backend(c10::kCPU).usage().allocated_bytes
            << " bytes, the pictures among them\n";
} catch (...) {
  return tare::report_error(std::current_exception());
}
