// When automatic checkpoints are written, and what a failed one leaves.
#include "tare/callback/autosave.h"

#include <c10/util/Exception.h>
#include <gmock/gmock.h>

#include <functional>
#include <new>
#include <stdexcept>

#include "callback/fake_learner.h"
#include "tare/base/error.h"

namespace tare::testing {
namespace {

using ::testing::ElementsAre;

TEST(Autosave, SavesEverySoManyStepsUnderTwoNamesInTurn) {
  FakeLearner learner;
  FitContext context{.learner = learner};
  Autosave autosave(2);
  for (context.step = 1; context.step <= 7; ++context.step) autosave.after_batch(context);
  EXPECT_THAT(learner.saved, ElementsAre("autosave-1", "autosave-0", "autosave-1"));
}

TEST(Autosave, SavesInEveryFit) {
  FakeLearner learner;
  Autosave autosave(4);
  for (int fit = 0; fit < 3; ++fit) {
    FitContext context{.learner = learner};
    autosave.before_fit(context);
    for (context.step = 1; context.step <= 5; ++context.step) autosave.after_batch(context);
  }
  EXPECT_THAT(learner.saved, ElementsAre("autosave-1", "autosave-0", "autosave-1"));
}

TEST(Autosave, DoesNotSaveTheStepThatAFitContinues) {
  FakeLearner learner;
  FitContext context{.learner = learner};
  Autosave autosave(4);
  context.step = 4;
  autosave.before_fit(context);
  autosave.after_batch(context);  // without a step
  EXPECT_TRUE(learner.saved.empty());
}

TEST(Autosave, SaysWhetherACheckpointIsThereWhenOneFails) {
  Autosave autosave(0);
  const auto full = [](const std::string&) { throw IoError("io.write", "somewhere", ENOSPC); };
  const auto warning = [&] {
    ::testing::internal::CaptureStderr();
    autosave.write(full);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(warning(), ::testing::HasSubstr("there is none yet"));
  autosave.write([](const std::string&) {});
  EXPECT_THAT(warning(), ::testing::HasSubstr("the one before stays"));
}

TEST(Autosave, PassesOverBatchesWithoutAStep) {
  FakeLearner learner;
  FitContext context{.learner = learner};
  Autosave autosave(2);
  for (const int64_t step : {0, 0, 1, 2, 2, 2, 3}) {
    context.step = step;
    autosave.after_batch(context);
  }
  EXPECT_EQ(learner.saved.size(), 1U);
}

TEST(Autosave, AFailedSaveIsAWarningAndKeepsItsTurn) {
  Autosave autosave(0);
  const auto full = [](const std::string&) { throw IoError("io.write", "somewhere", ENOSPC); };
  std::vector<std::string> saved;
  const auto works = [&](const std::string& name) { saved.push_back(name); };
  EXPECT_TRUE(autosave.write(works));
  EXPECT_FALSE(autosave.write(full));
  EXPECT_TRUE(autosave.failed());
  EXPECT_TRUE(autosave.write(works));
  EXPECT_FALSE(autosave.failed());
  EXPECT_THAT(saved, ElementsAre("autosave-1", "autosave-0"));
}

TEST(Autosave, AFailureOfAnyKindIsAWarning) {
  Autosave autosave(0);
  std::vector<std::string> saved;
  const auto works = [&](const std::string& name) { saved.push_back(name); };
  const std::vector<std::function<void(const std::string&)>> failures{
      [](const std::string&) {
        throw FormatError("checkpoint.save", "a", "state", "is too large");
      },
      [](const std::string&) { throw ConfigError("checkpoint.save", "a name is there twice"); },
      [](const std::string&) { throw std::runtime_error("else"); },
      [](const std::string&) { TORCH_CHECK(false, "no such kernel"); },
      [](const std::string&) { throw std::bad_alloc(); }};
  for (const auto& fails : failures) {
    ::testing::internal::CaptureStderr();
    EXPECT_FALSE(autosave.write(fails));
    EXPECT_THAT(::testing::internal::GetCapturedStderr(),
                ::testing::HasSubstr("no checkpoint was written: "));
    EXPECT_TRUE(autosave.failed());
  }
  EXPECT_TRUE(autosave.write(works));
  EXPECT_EQ(saved.back(), "autosave-1") << "its turn stays";
}

TEST(Autosave, GoesOnBehindTheCheckpointThatItWasLoadedFrom) {
  Autosave first(0), second(0);
  std::string state;
  first.write([&](const std::string&) { state = first.state(); });
  second.load_state(state);
  std::string next;
  second.write([&](const std::string& name) { next = name; });
  EXPECT_EQ(next, "autosave-0");
  EXPECT_THROW(second.load_state("{}"), FormatError);
  EXPECT_THROW(second.load_state(R"({"turn": 7})"), FormatError);
  EXPECT_THROW(Autosave(-1), ConfigError);
}

}  // namespace
}  // namespace tare::testing
