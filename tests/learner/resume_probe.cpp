// One process of a training run that is cut in two; see resume_process_test.cpp.
//   resume_probe straight FOLDER    the whole fit, saving a checkpoint at step 7
//   resume_probe resume FOLDER      a new process that loads it and continues
// Prints the bits of the weights and losses.
#include <cstdio>
#include <cstring>

#include "learner/fixture.h"
#include "tare/runtime/init.h"

namespace tare::testing {
namespace {

struct SaveAtStep7 final : Callback {
  [[nodiscard]] std::string name() const override { return "save"; }
  Action after_batch(FitContext& c) override {
    if (c.step == 7) c.learner.save("middle");
    return Action::proceed;
  }
};

int run(const std::string& mode, const std::filesystem::path& folder) {
  init();
  LearnerOptions options;
  options.device = test_device();
  options.batch = 16;
  options.folder = folder;
  options.progress = false;
  options.workers = mode == "resume" ? 4 : 1;  // the number of loader threads changes nothing
  Learner learner(make_net(mode == "resume" ? 99 : 1), split_points(), options);
  FitResult result;
  if (mode == "straight") {
    torch::manual_seed(8);
    result =
        learner.fit_one_cycle(3, {.max_lr = 0.01, .callbacks = {std::make_shared<SaveAtStep7>()}});
  } else {
    learner.load("middle");
    result = learner.resume();
  }
  const auto weights = flat(learner.model());
  for (int64_t i = 0; i < weights.numel(); ++i) std::printf("%a\n", weights[i].item<double>());
  for (const auto& row : result.epochs) std::printf("%a %a\n", row.train_loss, row.valid_loss);
  return 0;
}

}  // namespace
}  // namespace tare::testing

int main(int argc, char** argv) { return argc == 3 ? tare::testing::run(argv[1], argv[2]) : 2; }
