// Every allocation of every verb fails once: the error is typed, nothing is retained, the Learner
// is as it was before the call or after it, and what follows equals an undisturbed run bit for bit.
#include <gtest/gtest.h>

#include <functional>

#include "learner/every_allocation.h"
#include "learner/state.h"
#include "tare/base/error.h"
#include "tare/callback/recorder.h"
#include "tare/memory/host_allocator.h"
#include "tare/memory/oom.h"
#include "tare/model/registry.h"

namespace tare::testing {
namespace {

namespace host = memory::host_allocator;

struct Case {
  const char* model;
  const char* optimizer;
};
std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.model << '_' << c.optimizer;
}

class OutOfMemoryAt : public ::testing::TestWithParam<Case> {
 protected:
  [[nodiscard]] bool images() const { return std::string(GetParam().model) == "resnet9"; }

  [[nodiscard]] Model model(uint64_t seed = 1) const {
    torch::manual_seed(seed);
    if (!images()) return Model(Net());
    return models::make(
        "resnet9", {.classes = kClasses, .sample_shape = {1, 8, 8}, .width = 2, .dropout = 0.2});
  }

  [[nodiscard]] Splits data() const {
    if (!images()) return split_points(2 * kBatch, kBatch);
    const auto set = [](int64_t n, uint64_t seed) {
      auto generator = at::detail::createCPUGenerator(seed);
      const auto target = torch::arange(n) % kClasses;
      return tensor_dataset(torch::empty({n, 1, 8, 8}).normal_(0, 1, generator), target);
    };
    return {.train = set(2 * kBatch, 1), .valid = set(kBatch, 2), .test = set(kBatch, 3)};
  }

  [[nodiscard]] std::unique_ptr<Learner> learner(uint64_t seed = 1) const {
    LearnerOptions options = quiet(folder_);
    options.batch = kBatch;
    options.micro_batch = kBatch;  // else the batch would be tried in parts
    options.workers = 0;
    options.optimizer.kind = GetParam().optimizer;
    return std::make_unique<Learner>(model(seed), data(), std::move(options));
  }

  // A Learner in the middle of its life, saved as "start".
  [[nodiscard]] std::unique_ptr<Learner> trained() const {
    auto made = learner();
    torch::manual_seed(5);
    made->fit(1);
    made->save("start");
    return made;
  }

  // Lets each allocation of the host fail in turn. After each failure nothing is retained, and
  // `check` is called. Returns the number of failures.
  static uint64_t at_every_k(const std::function<void()>& verb,
                             const std::function<void(uint64_t)>& check) {
    int64_t bytes = 0, count = 0;
    const auto fail_at = [&](uint64_t k) {
      if (k > 0) {
        bytes = tracked();
        count = blocks();
      }
      host::fail_at(k);
    };
    return at_every_allocation<OutOfMemory>(fail_at, verb, [&](uint64_t k) {
      EXPECT_EQ(tracked(), bytes) << k;
      EXPECT_EQ(blocks(), count) << k;
      check(k);
    });
  }

  static constexpr int64_t kBatch = 6;
  TempDir folder_;
};

TEST_P(OutOfMemoryAt, FitAndResumeEqualTheUndisturbedRun) {
  auto l = trained();
  const double lr = 0.01;
  std::vector<State> after_step{capture(*l)};
  const FitResult straight = l->fit(
      1, {.lr = lr,
          .callbacks = {std::make_shared<AfterBatch>([&] { after_step.push_back(capture(*l)); })}});
  const State end = capture(*l);
  l->load("start");

  const uint64_t failures =
      at_every_k([&] { l->fit(1, {.lr = lr}); },
                 [&](uint64_t k) {
                   const State now = capture(*l);
                   EXPECT_TRUE(std::ranges::find(after_step, now) != after_step.end())
                       << "allocation " << k << " left a state between two steps";
                   const FitResult rest = l->can_resume() ? l->resume() : l->fit(1, {.lr = lr});
                   EXPECT_TRUE(capture(*l) == end) << k;
                   EXPECT_EQ(rest.epochs.at(0).train_loss, straight.epochs.at(0).train_loss) << k;
                   EXPECT_EQ(rest.epochs.at(0).valid_loss, straight.epochs.at(0).valid_loss) << k;
                   l->load("start");
                 });
  EXPECT_GT(failures, 50U);
}

TEST_P(OutOfMemoryAt, LookingAndWritingChangeNothing) {
  auto l = trained();
  const State before = capture(*l);
  const auto unchanged = [&](uint64_t k) {
    EXPECT_FALSE(l->destroyed());
    EXPECT_TRUE(capture(*l) == before) << k;
  };
  const double loss = l->validate().loss;
  const auto preds = l->get_preds();
  EXPECT_GT(at_every_k([&] { EXPECT_EQ(l->validate().loss, loss); }, unchanged), 3U);
  EXPECT_GT(at_every_k([&] { EXPECT_TRUE(torch::equal(l->get_preds().outputs, preds.outputs)); },
                       unchanged),
            3U);
  at_every_k([&] { l->save("start"); },
             [&](uint64_t k) {
               unchanged(k);
               EXPECT_NO_THROW((void)learner(9)->load("start")) << "the old checkpoint is whole";
             });
  at_every_k([&] { l->export_to(folder_ / "net.tare"); }, unchanged);
  EXPECT_TRUE(capture(*l) == before);
}

TEST_P(OutOfMemoryAt, LoadTakesAllOrNothing) {
  const State start = capture(*trained());
  auto l = learner(9);
  l->fit(1);
  l->save("other");
  const State other = capture(*l);
  at_every_k([&] { l->load("start"); },
             [&](uint64_t k) {
               const State now = capture(*l);
               EXPECT_TRUE(now == other || now == start) << k;
               l->load("other");
             });
  EXPECT_TRUE(capture(*l) == start);
}

TEST_P(OutOfMemoryAt, PurgeAndDestroyGiveBackOrLeaveAlone) {
  auto l = trained();
  const State weights{{flat(l->model())}};
  at_every_k([&] { l->purge(); },
             [&](uint64_t) { EXPECT_TRUE((State{{flat(l->model())}} == weights)); });
  EXPECT_TRUE((State{{flat(l->model())}} == weights));
  l->fit(1);
  at_every_k([&] { l->destroy(); }, [&](uint64_t) { EXPECT_FALSE(l->destroyed()); });
  EXPECT_TRUE(l->destroyed());
}

TEST_P(OutOfMemoryAt, ACompactingPurgeChangesNothingOrAll) {
  auto l = trained();
  l->fit(1);
  const State before = capture(*l);
  at_every_k([&] { l->purge({.clear_opt = false, .compact = true}); },
             [&](uint64_t) { EXPECT_EQ(capture(*l), before); });
  EXPECT_EQ(capture(*l), before);
}

TEST_P(OutOfMemoryAt, LoadLearnerOpensABundleOrKeepsNothing) {
  trained()->export_to(folder_ / "net.tare", {.destroy = true});
  const auto test = data().test;
  std::unique_ptr<Learner> loaded;
  at_every_k(
      [&] {
        if (images()) {
          loaded = load_learner(folder_ / "net.tare", {.test = test, .device = test_device()});
        } else {
          const LearnerLoadOptions options{.test = test, .device = test_device()};
          loaded = load_learner(folder_ / "net.tare", model(9), options);
        }
      },
      [&](uint64_t) { EXPECT_EQ(loaded, nullptr); });
  EXPECT_EQ(loaded->get_preds(Split::test).outputs.size(0), kBatch);
}

INSTANTIATE_TEST_SUITE_P(EveryModelAndOptimizer, OutOfMemoryAt,
                         ::testing::Values(Case{"mlp", "sgd"}, Case{"mlp", "adamw"},
                                           Case{"resnet9", "sgd"}, Case{"resnet9", "adamw"}),
                         ::testing::PrintToStringParamName());

TEST(OutOfMemory, InALoaderThreadComesOutOfTheFitAndTheFitGoesOn) {
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  options.workers = 2;
  options.micro_batch = options.batch;
  const auto make = [&] { return std::make_unique<Learner>(make_net(), split_points(), options); };
  auto straight = make(), l = make();
  torch::manual_seed(4);
  straight->fit(1);
  torch::manual_seed(4);
  l->optimizer().prepare();
  const int64_t bytes = tracked(), count = blocks();
  for (const uint64_t k : {1U, 2U, 5U, 9U, 14U, 30U, 60U}) {
    host::fail_at(k);
    const auto again = [&] { l->can_resume() ? l->resume() : l->fit(1); };
    EXPECT_THROW(again(), OutOfMemory) << k;
    host::fail_at(0);
    EXPECT_EQ(tracked(), bytes) << k;
    EXPECT_EQ(blocks(), count) << k;
  }
  l->resume();
  EXPECT_TRUE(torch::equal(flat(straight->model()), flat(l->model())));
}

}  // namespace
}  // namespace tare::testing
