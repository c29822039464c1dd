// What a coordinator asks of the place where its runs are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "support/temp_dir.h"
#include "sweep/query.h"
#include "sweep/shell_sweep.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/base/signals.h"
#include "tare/sweep/executor.h"
#include "tare/sweep/run_mark.h"

namespace tare::testing {
namespace {

using sweep::Child;
using sweep::ChildEnd;
using sweep::ChildMark;
using sweep::ChildStart;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A child; if its place is `taken` away, it saves and does nothing else.
class Tenant : public sweep::Process {
 public:
  Tenant(ChildStart how, bool taken)
      : child_(taken ? saving(std::move(how)) : how), taken_(taken) {}
  [[nodiscard]] ChildMark mark() const override { return ChildMark::of_cluster(); }
  [[nodiscard]] int descriptor() const override { return -1; }
  [[nodiscard]] bool has_ended() override { return child_.has_ended(); }
  ChildEnd wait() override {
    const ChildEnd end = child_.wait();
    return taken_ ? ChildEnd{.saved = true} : end;
  }
  void send(int signal) override { child_.send(signal); }

 private:
  static ChildStart saving(ChildStart how) {
    how.command = {"true"};
    return how;
  }

  Child child_;
  bool taken_;
};

/// One place, which is there at every third question only; the first run loses it.
class OnePlace : public sweep::Executor {
 public:
  std::map<std::string, std::unique_ptr<sweep::Process>> left_behind(
      const std::vector<ChildMark>& marks) override {
    marks_ = marks;
    return std::move(left_);
  }
  bool has_room(int64_t runs) override {
    asked_ = std::max(asked_, runs);
    return ++questions_ % 3 == 0;
  }
  std::unique_ptr<sweep::Process> start(const ChildStart& how) override {
    started_.push_back(how.name);
    return std::make_unique<Tenant>(how, started_.size() == 1);
  }

  std::map<std::string, std::unique_ptr<sweep::Process>> left_;
  std::vector<ChildMark> marks_;
  std::vector<std::string> started_;
  int64_t asked_ = 0;
  int questions_ = 0;
};

using ExecutorTest = ShellSweepTest;

TEST_F(ExecutorTest, RunsWaitForAPlaceAndGoOnInAnother) {
  const auto sweep = read("parameters: {a: [1, 2, 3]}\nresources: {jobs: 2}\n");
  auto surroundings = around(sweep, "finish 1 1");
  OnePlace place;
  surroundings.executor = &place;
  const auto report = sweep::run_sweep(sweep, surroundings);
  EXPECT_EQ(report.complete, 3);
  EXPECT_EQ(report.started, 4);
  EXPECT_THAT(place.started_, ElementsAre("s0_a1", "s0_a1", "s1_a2", "s2_a3"));
  EXPECT_EQ(place.asked_, 2);
  EXPECT_THAT(rows(store(), "SELECT state FROM trials"),
              ElementsAre("COMPLETE", "COMPLETE", "COMPLETE"));
}

TEST_F(ExecutorTest, FollowsWhatAnotherCoordinatorHasStarted) {
  const auto sweep = read("parameters: {a: [1, 2]}\n");
  auto surroundings = around(sweep, "finish 1 1");
  int asked = 0;  // the cells are stored, and nothing starts
  surroundings.interrupted = [&] { return ++asked > 0; };
  EXPECT_EQ(sweep::run_sweep(sweep, surroundings).waiting, 2);
  surroundings.interrupted = {};
  OnePlace place;
  // As the other one has done before it started the run.
  claim_folder(files_.log_dir() / "s1_a2", sweep, sweep::read_store(store(), "s").trials.at(1));
  const auto settings = std::vector<std::string>{"a=2", "name=s1_a2"};
  place.left_["s1_a2"] = std::make_unique<Tenant>(
      ChildStart{.command = shell_run(sweep, settings, 0, "sleep 0.3; finish 2 1"),
                 .out = files_.log_dir() / "out",
                 .err = files_.log_dir() / "err"},
      false);
  surroundings.executor = &place;
  const auto report = sweep::run_sweep(sweep, surroundings);
  EXPECT_EQ(report.complete, 2);
  EXPECT_EQ(report.started, 2);  // the other one twice: it has lost its place
  EXPECT_THAT(place.started_, ElementsAre("s0_a1", "s0_a1"));
  EXPECT_THAT(rows(store(), "SELECT value FROM trial_values ORDER BY trial_id"),
              ElementsAre("1.0", "2.0"));
}

// What a program ignores, the programs that it executes ignore too, unless it takes care.
TEST_F(ExecutorTest, AProgramDoesNotInheritWhatThisOneIgnores) {
  ignore_closed_output_signal();
  ignore_file_limit_signal();
  const TempDir folder;
  Child child({.command = {"grep", "SigIgn", "/proc/self/status"},
               .out = folder / "out",
               .err = folder / "err"});
  EXPECT_EQ(child.wait().exit_code, 0);
  restore_write_signals();
  const std::string text = io::read_text(folder / "out");
  const uint64_t ignored = std::stoull(text.substr(text.find(':') + 1), nullptr, 16);
  for (const int signal : {SIGPIPE, SIGXFSZ}) EXPECT_EQ(ignored >> (signal - 1) & 1, 0U) << text;
}

TEST_F(ExecutorTest, ThisMachineDoesNotTouchWhatMayBeOnInACluster) {
  sweep::LocalExecutor local;
  EXPECT_TRUE(local.left_behind({ChildMark{.pid = 1}}).empty());
  try {
    (void)local.left_behind({ChildMark::of_cluster()});
    FAIL();
  } catch (const StateError& error) {
    EXPECT_THAT(error.what(), HasSubstr("executor: slurm"));
  }
}

}  // namespace
}  // namespace tare::testing
