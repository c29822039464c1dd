// A thread writes checkpoints while a fit goes on. They equal checkpoints that the fit waits for,
// are whole at every moment and on the ledger, and no error of a write is lost.
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>

#include "learner/fixture.h"
#include "learner/make_seeded.h"
#include "learner/state.h"
#include "learner/zoo.h"
#include "support/budget.h"
#include "support/fault_file_system.h"
#include "support/files.h"
#include "tare/base/error.h"
#include "tare/callback/autosave.h"
#include "tare/callback/averaged_weights.h"
#include "tare/callback/monitor.h"
#include "tare/callback/saving.h"
#include "tare/checkpoint/checkpoint.h"
#include "tare/checkpoint/safetensors.h"
#include "tare/memory/oom.h"
#include "tare/train/train_state.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;

LearnerOptions in_background(const TempDir& folder, bool background = true) {
  at::set_num_threads(1);
  LearnerOptions options = quiet(folder);
  options.workers = 0;
  options.save_in_background = background;
  return options;
}

/// Calls a function after each batch.
struct AfterBatch final : Callback {
  explicit AfterBatch(std::function<void(FitContext&)> called) : call(std::move(called)) {}
  [[nodiscard]] std::string name() const override { return "after_batch"; }
  Action after_batch(FitContext& context) override {
    call(context);
    return Action::proceed;
  }
  std::function<void(FitContext&)> call;
};

CallbackPtr after_batch(std::function<void(FitContext&)> call) {
  return std::make_shared<AfterBatch>(std::move(call));
}

/// Saves a checkpoint with the number of each step.
CallbackPtr save_each() {
  return after_batch([](FitContext& c) { c.learner.save("step-" + std::to_string(c.step)); });
}

/// Lets every flush of a file wait until it is opened, and counts the writes that wait.
class Gate final : public io::FileSystem {
 public:
  Gate() : before_(io::set_file_system(this)) {}
  ~Gate() override { io::set_file_system(before_); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  int flush(int fd) override {
    std::unique_lock lock(mutex_);
    ++waiting_;
    came_.notify_all();
    opened_.wait(lock, [this] { return is_open_; });
    --waiting_;
    return fd < 0 ? -EBADF : 0;
  }
  int flush_directory(const char*) override { return 0; }
  void open_gate() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    opened_.notify_all();
  }
  /// Returns once a write waits.
  void wait_for_one() {
    std::unique_lock lock(mutex_);
    came_.wait(lock, [this] { return waiting_ > 0; });
  }
  [[nodiscard]] int waiting() {
    const std::lock_guard lock(mutex_);
    return waiting_;
  }

 private:
  io::FileSystem* before_;
  std::mutex mutex_;
  std::condition_variable came_, opened_;
  bool is_open_ = false;
  int waiting_ = 0;
};

TEST(BackgroundSave, TheFitGoesOnWhileAThreadWrites) {
  const TempDir folder;
  Gate gate;
  int64_t steps_beside = 0;
  auto learner = make_seeded(in_background(folder));
  const auto result = learner->fit(1, {.callbacks = {after_batch([&](FitContext& c) {
                                         if (c.step == 1) {
                                           c.learner.save("one");
                                           gate.wait_for_one();
                                           EXPECT_FALSE(checkpoint::exists(folder / "one"));
                                         } else if (c.step <= 4) {
                                           steps_beside += gate.waiting();
                                         } else if (c.step == 5) {
                                           gate.open_gate();
                                         }
                                       })}});
  EXPECT_EQ(steps_beside, 3) << "steps 2, 3 and 4";
  EXPECT_EQ(result.steps, 6);
  ASSERT_TRUE(checkpoint::exists(folder / "one")) << "the end of the fit waits";
  auto resumed = make_seeded(in_background(folder), 9);
  ASSERT_TRUE(resumed->load("one").resumable);
  EXPECT_EQ(resumed->resume().steps, 5);
  EXPECT_TRUE(capture(*resumed) == capture(*learner)) << "it holds the state of its step";
}

TEST(BackgroundSave, OneCheckpointIsWrittenAtATime) {
  /// Counts the folders that are being written.
  class Counting final : public io::FileSystem {
   public:
    Counting() : before_(io::set_file_system(this)) {}
    ~Counting() override { io::set_file_system(before_); }
    Counting(const Counting&) = delete;
    Counting& operator=(const Counting&) = delete;
    int make_directory(const char* path) override {
      most = std::max(most.load(), ++writing_);
      return FileSystem::make_directory(path);
    }
    int exchange(const char* a, const char* b) override {
      --writing_;
      return FileSystem::exchange(a, b);
    }
    int rename(const char* from, const char* to) override {
      --writing_;
      return FileSystem::rename(from, to);
    }
    std::atomic<int> most{0};

   private:
    io::FileSystem* before_;
    std::atomic<int> writing_{0};
  };
  const TempDir folder;
  Counting files;
  make_seeded(in_background(folder))->fit(2, {.callbacks = {save_each()}});
  EXPECT_EQ(files.most, 1);
  for (int64_t step = 1; step <= 12; ++step)
    EXPECT_TRUE(checkpoint::exists(folder / ("step-" + std::to_string(step)))) << step;
}

TEST(BackgroundSave, EachCheckpointIsThatOfAFitThatWaits) {
  const TempDir waiting, behind;
  const auto fit = [&](const TempDir& folder, bool background) {
    auto learner = make_seeded(in_background(folder, background));
    (void)learner->fit(
        2,
        {.lr = 0.05, .callbacks = {std::make_shared<Ema>(EmaOptions{.decay = 0.5}), save_each()}});
    return capture(*learner);
  };
  const State expected = fit(waiting, false);
  EXPECT_TRUE(fit(behind, true) == expected) << "the training is not changed";
  for (int64_t step = 1; step <= 12; ++step) {
    const std::string name = "step-" + std::to_string(step);
    SCOPED_TRACE(name);
    for (const char* part : {"model.safetensors", "optimizer.safetensors"})
      EXPECT_TRUE(content_of(behind / name / part) == content_of(waiting / name / part)) << part;
    const auto a = checkpoint::load(waiting / name), b = checkpoint::load(behind / name);
    const auto tensors = [](const checkpoint::Loaded& loaded) {
      std::map<std::string, at::Tensor> all;
      for (const auto& one : loaded.extra) all.emplace(one.name, one.tensor);
      return all;
    };
    const auto left = tensors(a), right = tensors(b);
    ASSERT_EQ(left.size(), right.size());
    for (const auto& [key, tensor] : left) {
      if (!key.starts_with("rng/") && !key.starts_with("state/callbacks/0/")) continue;
      EXPECT_TRUE(at::equal(tensor, right.at(key))) << key;
    }
    EXPECT_EQ(train_state_from(b.state, b.extra, "b").saves, step);
  }
}

/// Has one tensor under two names, and a view of it.
class TwiceNamed final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "twice_named"; }
  [[nodiscard]] std::string state() const override { return "{}"; }
  [[nodiscard]] std::vector<NamedTensor> tensors() const override {
    return {{"one", tensor_}, {"same", tensor_}, {"part", tensor_.narrow(0, 1, 2)}};
  }

 private:
  at::Tensor tensor_ = torch::arange(4);
};

TEST(BackgroundSave, TensorsThatAreTiedStaySo) {
  const TempDir folder;
  make_seeded(in_background(folder))
      ->fit(1, {.callbacks = {std::make_shared<TwiceNamed>(), save_each()}});
  const auto file = checkpoint::SafeTensors::open(folder / "step-1/extra.safetensors");
  const std::string place = "state/callbacks/0/";
  EXPECT_THAT(file.ties(), ::testing::ElementsAre(::testing::Pair(place + "same", place + "one")));
  EXPECT_TRUE(at::equal(file.tensor(place + "same"), torch::arange(4)));
  EXPECT_TRUE(at::equal(file.tensor(place + "part"), torch::arange(1, 3)));
}

TEST(BackgroundSave, TheCopiesAreOnTheLedgerAndEndWithTheFit) {
  const TempDir folder;
  auto learner = make_seeded(in_background(folder));
  learner->optimizer().prepare();
  int64_t state = 0;
  for (const auto& list :
       {learner->model().state(), learner->optimizer().state(), rng_state(c10::kCPU)})
    for (const auto& one : list) state += static_cast<int64_t>(one.tensor.nbytes());
  const int64_t before = tracked();
  std::vector<int64_t> listed;
  const auto look = after_batch([&](FitContext& c) {
    int64_t bytes = 0;
    for (const auto& entry : learner->ledger().entries())
      if (entry.name == "saved copy") bytes += entry.bytes;
    listed.push_back(bytes);
    if (c.step == 2) c.learner.save("two");
  });
  learner->fit(1, {.callbacks = {look}});
  EXPECT_EQ(listed, std::vector<int64_t>(6, state)) << "from the first step to the last";
  EXPECT_EQ(tracked(), before);
  const PurgeReport purged = learner->purge(false);
  EXPECT_EQ(purged.tracked_after, before);
}

TEST(BackgroundSave, IsRefusedBeforeTheFirstStepWhereItsCopiesDoNotFit) {
  const TempDir folder;
  LearnerOptions options = in_background(folder);
  options.micro_batch = options.batch;
  auto learner = make_seeded(options);
  learner->fit(1);
  int64_t steps = 0;
  const BudgetScope budget(1000);
  try {
    learner->fit(1, {.callbacks = {after_batch([&](FitContext&) { ++steps; })}});
    FAIL() << "it has no memory";
  } catch (const OutOfMemory& error) {
    EXPECT_THAT(error.what(), HasSubstr("save_in_background"));
  }
  EXPECT_EQ(steps, 0);
}

TEST(BackgroundSave, AnErrorEndsTheFitAtTheNextStepAndTheFitMayContinue) {
  const TempDir folder;
  auto straight = make_seeded(in_background(folder));
  straight->fit(2, {.lr = 0.05});
  auto learner = make_seeded(in_background(folder));
  int64_t last = 0;
  {
    const FaultFileSystem full({.at = 3, .error_number = ENOSPC, .sticky = true});
    const auto save = after_batch([&](FitContext& c) {
      last = c.step;
      if (c.step == 2) c.learner.save("full");
      if (c.step == 3) c.learner.finish_saves();  // at the latest here
    });
    EXPECT_THROW(learner->fit(2, {.lr = 0.05, .callbacks = {save}}), IoError);
  }
  EXPECT_LE(last, 3);
  EXPECT_FALSE(checkpoint::exists(folder / "full"));
  ASSERT_TRUE(learner->can_resume());
  learner->resume();
  EXPECT_TRUE(capture(*learner) == capture(*straight));
}

TEST(BackgroundSave, AnErrorOfTheLastStepIsThrownByTheEndOfTheFit) {
  const TempDir folder;
  auto learner = make_seeded(in_background(folder));
  const FaultFileSystem full({.at = 3, .error_number = EIO, .sticky = true});
  const auto save = after_batch([](FitContext& c) {
    if (c.step == 6) c.learner.save("last");
  });
  EXPECT_THROW(learner->fit(1, {.callbacks = {save}}), IoError);
  EXPECT_EQ(learner->history().size(), 1U);
}

TEST(BackgroundSave, AFailedAutosaveIsAWarningAndKeepsItsTurn) {
  const TempDir folder;
  auto learner = make_seeded(in_background(folder));
  const auto autosave = std::make_shared<Autosave>(2);
  std::string log;
  {
    const FaultFileSystem full({.at = 1, .error_number = ENOSPC, .sticky = true});
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(learner->fit(1, {.callbacks = {autosave}}).steps, 6);
    log = ::testing::internal::GetCapturedStderr();
  }
  EXPECT_TRUE(autosave->failed());
  EXPECT_THAT(log, HasSubstr("no checkpoint was written: "));
  EXPECT_THAT(log, HasSubstr("there is none yet, training continues"));
  learner->fit(1, {.callbacks = {autosave}});
  EXPECT_FALSE(autosave->failed());
  EXPECT_TRUE(checkpoint::exists(folder / "autosave-1"));
  EXPECT_TRUE(checkpoint::exists(folder / "autosave-0"));
}

TEST(BackgroundSave, TheCallbacksThatSaveKeepWhatTheyPromise) {
  const TempDir waiting, behind;
  const auto fit = [&](const TempDir& folder, bool background) {
    auto learner = make_seeded(in_background(folder, background));
    const FitResult result = learner->fit(
        4, {.lr = 0.3,
            .callbacks = {std::make_shared<SaveBest>(SaveBestOptions{}),
                          std::make_shared<KeepCheckpoints>(KeepCheckpointsOptions{.last = 2}),
                          std::make_shared<TimedSave>(TimedSaveOptions{.minutes = 1e-9})}});
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      names.insert(entry.path().filename());
    return std::tuple(result.restored_epoch, names, capture(*learner));
  };
  const auto expected = fit(waiting, false), found = fit(behind, true);
  EXPECT_EQ(std::get<0>(found), std::get<0>(expected));
  EXPECT_EQ(std::get<1>(found), std::get<1>(expected));
  EXPECT_TRUE(std::get<2>(found) == std::get<2>(expected));
}

TEST(BackgroundSave, ABestCheckpointThatWasNotWrittenIsNotTheBest) {
  const TempDir folder;
  auto learner = make_seeded(in_background(folder));
  const auto best = std::make_shared<SaveBest>();
  ::testing::internal::CaptureStderr();
  {
    const FaultFileSystem full({.at = 1, .error_number = ENOSPC, .sticky = true});
    const FitResult result = learner->fit(2, {.callbacks = {best}});
    EXPECT_EQ(result.restored_epoch, 0);
  }
  EXPECT_FALSE(best->best());
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("the best weights so far were not saved"));
}

TEST(BackgroundSave, AFitThatFailsWaitsForTheWrite) {
  const TempDir folder;
  auto learner = make_seeded(in_background(folder));
  const auto save_and_fail = after_batch([](FitContext& c) {
    if (c.step < 3) return;
    c.learner.save("three");
    throw std::runtime_error("planted");
  });
  EXPECT_THROW(learner->fit(1, {.callbacks = {save_and_fail}}), std::runtime_error);
  EXPECT_TRUE(checkpoint::exists(folder / "three"));
  (void)learner->destroy();
  EXPECT_EQ(checkpoint::load(folder / "three").has_optimizer, true);
}

TEST(BackgroundSave, OutsideAFitASaveWaits) {
  const TempDir folder;
  auto learner = make_seeded(in_background(folder));
  learner->fit(1);
  {
    const FaultFileSystem full({.at = 1, .error_number = ENOSPC, .sticky = true});
    EXPECT_THROW(learner->save("after"), IoError);
  }
  learner->save("after");
  EXPECT_TRUE(checkpoint::exists(folder / "after"));
}

// The process ends at the k-th call of the file system, which a thread makes in the second save.
TEST(BackgroundSave, AKillLeavesTheCheckpointBeforeOrTheNewOneWhole) {
  const auto fit = [](const TempDir& folder, const Fault& fault) {
    auto learner = make_seeded(in_background(folder));
    std::optional<FaultFileSystem> files;
    learner->fit(1, {.callbacks = {after_batch([&](FitContext& c) {
                       if (c.step == 1) c.learner.save("same");
                       if (c.step != 3) return;
                       c.learner.finish_saves();
                       files.emplace(fault);
                       c.learner.save("same");
                     })}});
    return files->count();
  };
  int64_t calls = 0;
  {
    const TempDir folder;
    calls = fit(folder, {});
  }
  ASSERT_GT(calls, 15);
  std::set<int64_t> found;
  for (int64_t k = 1; k <= calls; k += 2) {
    SCOPED_TRACE(k);
    const TempDir folder;
    const pid_t child = ::fork();
    if (child == 0) {
      (void)fit(folder, {.at = k, .kind = Fault::Kind::exit});
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), FaultFileSystem::kExitCode);
    auto resumed = make_seeded(in_background(folder), 9);
    ASSERT_TRUE(resumed->load("same").resumable);
    found.insert(6 - resumed->resume().steps);
  }
  EXPECT_EQ(found, (std::set<int64_t>{1, 3})) << "the steps of the checkpoints that were left";
}

TEST(BackgroundSave, IsInThePlanToTheByte) {
  at::set_num_threads(1);
  for (const char* kind : {"mlp", "resnet9", "gpt"}) {
    SCOPED_TRACE(kind);
    const TempDir folder;
    const Zoo zoo(kind);
    LearnerOptions options = zoo.options(folder);
    options.workers = 0;
    const auto saves = std::make_shared<TimedSave>(TimedSaveOptions{.minutes = 1e-9});
    options.callbacks = {std::make_shared<Ema>(), saves};
    const auto planned = [&](bool background, const char* device) {
      options.save_in_background = background;
      Learner learner(zoo.model(), {.train = zoo.set(90, 1), .valid = zoo.set(30, 2)}, options);
      const MemoryPlan plan = learner.plan({.device = device, .advice = false});
      EXPECT_TRUE(plan.known()) << plan.reason;
      if (std::string_view(device).empty()) {
        const memory::PeakScope scope(c10::kCPU);
        learner.fit(2);
        EXPECT_EQ(plan.peak_bytes, scope.peak_above_start_bytes()) << plan.str();
      }
      return plan.peak_bytes;
    };
    EXPECT_GT(planned(true, ""), planned(false, ""));
    EXPECT_EQ(planned(true, "cuda:8GiB"), planned(false, "cuda:8GiB"))
        << "the copies lie on the host";
    // Its averages are in no checkpoint of the first epoch.
    options.callbacks = {std::make_shared<Swa>(SwaOptions{.start = 0}), saves};
    EXPECT_GT(planned(true, ""), planned(false, ""));
  }
}

}  // namespace
}  // namespace tare::testing
