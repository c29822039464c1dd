// Staged fine-tuning on digits, as in recipes/configs/digits/staged.yaml, but in C++: pre-train on
// generated digits, train a new head on real ones with the body frozen, then all layers with lower
// rates for early ones, at two image sizes. Each stage is measured and gives its memory back before
// the next one starts.
//
// Run: build/bin/staged_digits [BATCHES]     Expect: at least 99 % validation accuracy, 2.7 minutes
// on two cores.
#include <tare/runtime/exit_code.h>
#include <tare/tare.h>

#include <iostream>

namespace {

using namespace tare;

constexpr int64_t kBatch = 64;
int64_t batches = 0;  // of an epoch; 0: all

Splits digits(const std::string& name, int64_t size) {
  DataOptions options{.name = name, .size = size, .stratify = false};
  options.transforms = {Normalise{.mean = {0.13}, .std = {0.31}},
                        Affine{.degrees = 10, .zoom = 0.1}, Shift{.pixels = 2}};
  return limited(datasets::make(options).splits,
                 {.train_batches = batches, .valid_batches = batches}, kBatch);
}

// Runs `train` on its own data; everything it allocates is freed when it returns.
template <class Train>
void stage(const char* name, Learner& learner, const char* data, int64_t size, Train&& train) {
  Experiment experiment(name, learner);
  experiment.emplace<DataScope>("data", learner, digits(data, size), kBatch);
  train();
  std::cout << experiment.finish() << '\n';
}

}  // namespace

int main(int argc, char** argv) try {
  init();
  if (argc > 1) batches = std::stoll(argv[1]);
  Learner learner(models::make("resnet9", {.width = 8, .dropout = 0.2}), {},
                  {.metrics = {"accuracy"},
                   .kernels = {.channels_last = true},
                   .optimizer = {.weight_decay = 0.05},
                   .folder = "runs/staged_digits"});
  std::cout << learner.summary() << '\n';

  stage("pretrain", learner, "generated_digits", 20,
        [&] { learner.fit_one_cycle(1, {.max_lr = 1e-2}); });
  models::reset_head(learner.model());

  for (const int64_t size : {20, 28}) {
    const bool small = size == 20;
    stage("head", learner, "digits", size, [&] {
      learner.freeze();
      learner.fit_one_cycle(1, {.max_lr = small ? 1e-2 : 2e-3});
    });
    stage("all", learner, "digits", size, [&] {
      learner.unfreeze();
      if (small) return (void)learner.fit_one_cycle(5, {.max_lr = lr_range(2e-3, 1e-2)});
      const auto best =
          std::make_shared<SaveBest>(SaveBestOptions{.monitor = {.figure = "accuracy"}});
      learner.fit_one_cycle(48, {.max_lr = lr_range(1e-3, 5e-3), .callbacks = {best}});
    });
  }

  learner.set_data(digits("digits", 28), kBatch);
  const Evaluation valid = learner.validate();
  std::cout << "valid: loss " << valid.loss << ", accuracy " << valid.metrics.at(0).value << '\n';
  learner.export_to("runs/staged_digits/digits.tare", {.destroy = true});
  std::cout << "after destroy the process tracks "
            << format_bytes(memory::backend(c10::kCPU).usage().allocated_bytes) << '\n';
} catch (...) {
  return report_error(std::current_exception());
}
