// A run on a disk that fails, fills up or loses its power at any call: nothing is half written, and
// the continued run ends as an undisturbed one.
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "recipe/tiny.h"
#include "support/deep.h"
#include "support/fault_file_system.h"
#include "support/power_loss.h"
#include "support/small_disk.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/callback/autosave.h"
#include "tare/inference/predictor.h"
#include "tare/learner/learner.h"
#include "tare/model/registry.h"
#include "tare/runtime/init.h"
#include "tare/train/train_state.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;

// One phase of two steps, so that a whole run is a few dozen calls.
RecipeOptions shortest(const fs::path& folder) {
  const TempDir unused;
  RecipeOptions recipe = tiny(unused);
  recipe.folder = folder;
  recipe.batch = 80;
  recipe.learner.workers = 0;
  recipe.save_every = 1;
  recipe.model.options.width = 2;
  recipe.phases.resize(1);
  return recipe;
}

std::string bundle_of(const fs::path& folder) { return io::read_text(folder / "tiny/tiny.tare"); }

std::vector<fs::path> leftovers(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const auto extension = entry.path().extension();
    if (extension == ".partial" || extension == ".old") found.push_back(entry.path());
  }
  return found;
}

class RunOnABadDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    const TempDir straight;
    (void)run_recipe(shortest(straight.path()));
    expected_ = bundle_of(straight.path());
    const TempDir counted;
    const FaultFileSystem counter;
    (void)run_recipe(shortest(counted.path()));
    calls_ = counter.count();
    ASSERT_GT(calls_, 100);
  }

  // A run as it continues where the last one stopped.
  void expect_goes_on(const fs::path& folder, const std::string& what) const {
    const RunReport report = run_recipe(shortest(folder), {.resume = Resume::automatic});
    EXPECT_FALSE(report.unsaved) << what;
    EXPECT_TRUE(bundle_of(folder) == expected_) << what;
    EXPECT_THAT(leftovers(folder), ::testing::IsEmpty()) << what;
  }

  std::string expected_;
  int64_t calls_ = 0;
};

TEST_F(RunOnABadDisk, EveryErrorAtEveryCallIsReportedOrWithoutConsequence) {
  for (const int error : {0, EINTR, ENOSPC, EIO, EROFS, EDQUOT}) {  // 0: a short write
    const int64_t stride = reduced<int64_t>(83, 1);
    for (int64_t k = 1 + error % stride; k <= calls_; k += stride) {
      const std::string what = "error " + std::to_string(error) + " at call " + std::to_string(k);
      const TempDir folder;
      {
        const auto kind = error == 0 ? Fault::Kind::short_write : Fault::Kind::error;
        const FaultFileSystem faulty({.at = k, .kind = kind, .error_number = error});
        try {
          (void)run_recipe(shortest(folder.path()));
          EXPECT_TRUE(bundle_of(folder.path()) == expected_) << what;
        } catch (const IoError& failed) {
          EXPECT_TRUE(error != 0 && error != EINTR) << what << ": " << failed.what();
          EXPECT_FALSE(failed.path().empty()) << what;
        }
      }
      expect_goes_on(folder.path(), what);
    }
  }
}

TEST_F(RunOnABadDisk, EndedAtAnyCallItGoesOn) {
  const int64_t stride = reduced<int64_t>(41, 1);
  int64_t k = 1;
  for (bool ended = true; ended; k += stride) {
    const TempDir folder;
    const pid_t run = ::fork();
    if (run == 0) {
      const FaultFileSystem ending({.at = k, .kind = Fault::Kind::exit});
      (void)run_recipe(shortest(folder.path()));
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(run, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    ended = WEXITSTATUS(status) == FaultFileSystem::kExitCode;
    ASSERT_TRUE(ended || WEXITSTATUS(status) == 0) << "call " << k;
    expect_goes_on(folder.path(), "ended at call " + std::to_string(k));
  }
  EXPECT_GT(k, calls_ / 2);
}

TEST_F(RunOnABadDisk, PowerLostAtAnyCallLosesNoCheckpoint) {
  for (const bool names_survive : {false, true}) {
    const int64_t stride = reduced<int64_t>(37, 1);
    for (int64_t k = 2; k <= calls_; k += stride) {
      const std::string what = "call " + std::to_string(k) + (names_survive ? ", names first" : "");
      const TempDir folder, found;
      {
        PowerLossFileSystem disk(folder.path(), k, names_survive);
        try {
          (void)run_recipe(shortest(folder.path()));
        } catch (const IoError&) {
        }
        disk.restore_into(found.path());
      }
      expect_goes_on(found.path(), what);
    }
  }
}

class FullDisk : public RunOnABadDisk, public ::testing::WithParamInterface<int64_t> {};

TEST_P(FullDisk, TrainingGoesOnAndALaterRunSaves) {
  const SmallDisk disk(GetParam());
  if (!disk.mounted()) GTEST_SKIP() << "mounting a tmpfs is not allowed here";
  fs::create_directories(disk.path() / "tiny");
  fill(disk.path() / "ballast");
  try {
    (void)run_recipe(shortest(disk.path()));
    ADD_FAILURE() << "the bundle cannot have been written";
  } catch (const IoError& error) {
    EXPECT_EQ(error.error_number(), ENOSPC) << error.what();
  }
  fs::remove(disk.path() / "ballast");
  expect_goes_on(disk.path(), "with space again");
}

/// Fills the disk after the first step and frees it after the sixth.
struct FillsTheDisk final : Callback {
  explicit FillsTheDisk(fs::path path) : ballast(std::move(path)) {}
  [[nodiscard]] std::string name() const override { return "fills"; }
  Action after_batch(FitContext&) override {
    if (++steps == 1) fill(ballast);
    if (steps == 6) fs::remove(ballast);
    return Action::proceed;
  }
  fs::path ballast;
  int steps = 0;
};

TEST_P(FullDisk, TrainingGoesOnAndALaterSaveOfTheSameFitWorks) {
  const SmallDisk disk(GetParam());
  if (!disk.mounted()) GTEST_SKIP() << "mounting a tmpfs is not allowed here";
  const auto set = tensor_dataset(at::zeros({32, 1, 12, 12}), at::zeros({32}, at::kLong));
  const auto autosave = std::make_shared<Autosave>(1);
  struct Failures final : Callback {
    [[nodiscard]] std::string name() const override { return "failures"; }
    Action after_batch(FitContext&) override {
      count += autosave->failed();
      return Action::proceed;
    }
    std::shared_ptr<Autosave> autosave;
    int count = 0;
  };
  const auto failures = std::make_shared<Failures>();
  failures->autosave = autosave;
  Learner learner(
      models::make("resnet9", {.sample_shape = {1, 12, 12}, .width = 4}), {.train = set},
      {.batch = 4,
       .folder = disk.path(),
       .callbacks = {std::make_shared<FillsTheDisk>(disk.path() / "ballast"), autosave, failures},
       .progress = false});
  EXPECT_EQ(learner.fit(1).steps, 8);
  EXPECT_EQ(failures->count, 5) << "of the first five steps";
  EXPECT_FALSE(autosave->failed());
  int loaded = 0;
  for (const auto& name : Autosave::names()) {
    EXPECT_NO_THROW(learner.load(name)) << name;
    ++loaded;
  }
  EXPECT_EQ(loaded, 2);
  EXPECT_THAT(leftovers(disk.path()), ::testing::IsEmpty());
}

TEST_P(FullDisk, FilesThatMayNotGrowAreAWarningWhileTraining) {
  const TempDir folder;
  struct rlimit before {};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto old_handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 2048, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  try {
    (void)run_recipe(shortest(folder.path()));
    ADD_FAILURE() << "the bundle cannot have been written";
  } catch (const IoError& error) {
    EXPECT_EQ(error.error_number(), EFBIG) << error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, old_handler);
  expect_goes_on(folder.path(), "without the limit");
}

INSTANTIATE_TEST_SUITE_P(OfMegabytes, FullDisk, ::testing::Values(1 << 20, 64 << 20));

}  // namespace
}  // namespace tare::testing
