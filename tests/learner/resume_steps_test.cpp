// A run that is saved at any of its steps continues bit for bit, with any number of loader threads.
#include <gtest/gtest.h>

#include "learner/fixture.h"
#include "tare/model/registry.h"
#include "tare/transform/transform.h"

namespace tare::testing {
namespace {

constexpr int64_t kEpochs = 5, kSteps = 50, kBatch = 8;

class SaveEveryStep final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "save_every_step"; }
  Action after_batch(FitContext& c) override {
    c.learner.save("step-" + std::to_string(c.step));
    return Action::proceed;
  }
};

// Images with augmentation, a network with batch norm and dropout, a one-cycle AdamW.
std::unique_ptr<Learner> make(const TempDir& folder, int64_t workers, uint64_t seed) {
  torch::manual_seed(seed);
  const auto images = [](int64_t n, uint64_t s) {
    auto generator = at::detail::createCPUGenerator(s);
    const auto pixels = torch::empty({n, 1, 10, 10}).random_(0, 256, generator).to(torch::kByte);
    return tensor_dataset(pixels, torch::arange(n) % kClasses);
  };
  const Transforms augmented{Affine{15, 0.1}, Shift{1}, Flip{0.5}, Normalise{{0.5}, {0.25}}};
  LearnerOptions options = quiet(folder);
  options.batch = kBatch;
  options.workers = workers;
  return std::make_unique<Learner>(
      models::make("convnet",
                   {.classes = kClasses, .sample_shape = {1, 10, 10}, .width = 4, .dropout = 0.3}),
      Splits{.train = transformed(images(kSteps / kEpochs * kBatch, 1), augmented),
             .valid = transformed(images(12, 2), augmented.deterministic())},
      std::move(options));
}

class ResumeAtEveryStep : public ::testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(LoaderThreads, ResumeAtEveryStep, ::testing::Values(1, 4));

TEST_P(ResumeAtEveryStep, EqualsTheStraightRunBitForBit) {
  const TempDir folder;
  auto straight = make(folder, 5 - GetParam(), 1);  // the other number of threads
  const auto whole = straight->fit_one_cycle(
      kEpochs, {.max_lr = 0.01, .callbacks = {std::make_shared<SaveEveryStep>()}});
  ASSERT_EQ(whole.steps, kSteps);
  const torch::Tensor expected = flat(straight->model());
  for (int64_t step = 1; step <= kSteps; ++step) {
    auto fresh = make(folder, GetParam(), 77);
    ASSERT_TRUE(fresh->load("step-" + std::to_string(step)).resumable) << step;
    const FitResult rest = fresh->resume();
    ASSERT_TRUE(torch::equal(flat(fresh->model()), expected)) << "saved at step " << step;
    for (size_t i = 0; i < kEpochs; ++i) {
      EXPECT_EQ(rest.epochs.at(i).train_loss, whole.epochs.at(i).train_loss) << step;
      EXPECT_EQ(rest.epochs.at(i).valid_loss, whole.epochs.at(i).valid_loss) << step;
    }
  }
}

}  // namespace
}  // namespace tare::testing
