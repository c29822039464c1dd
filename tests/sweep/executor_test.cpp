// Tests how a coordinator uses the executor of its runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sweep/query.h"
#include "sweep/shell_sweep.h"
#include "tare/base/io.h"
#include "tare/launch/local_executor.h"
#include "tare/sweep/run_mark.h"
#include "tare/sweep/store_read.h"

namespace tare::testing {
namespace {

using launch::Child;
using launch::ChildEnd;
using launch::ChildStart;
using launch::ProcessId;
using ::testing::ElementsAre;

/// A child; if its place is `taken` away, it saves and does nothing else.
class Tenant : public launch::Process {
 public:
  Tenant(ChildStart how, bool taken)
      : child_(taken ? saving(std::move(how)) : how), taken_(taken) {}
  [[nodiscard]] ProcessId id() const override { return ProcessId::of_executor("one place"); }
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
class OnePlace : public launch::Executor {
 public:
  std::map<std::string, std::unique_ptr<launch::Process>> recover(
      const std::vector<ProcessId>& ids) override {
    ids_ = ids;
    return std::move(left_);
  }
  bool has_capacity(int64_t runs) override {
    asked_ = std::max(asked_, runs);
    return ++questions_ % 3 == 0;
  }
  std::unique_ptr<launch::Process> start(const ChildStart& how) override {
    started_.push_back(how.name);
    return std::make_unique<Tenant>(how, started_.size() == 1);
  }

  std::map<std::string, std::unique_ptr<launch::Process>> left_;
  std::vector<ProcessId> ids_;
  std::vector<std::string> started_;
  int64_t asked_ = 0;
  int questions_ = 0;
};

/// Takes which runs have ended, with the file that each has printed to.
class Ends final : public sweep::RunRecorder {
 public:
  void starts(const std::string&, const std::filesystem::path&) override {}
  void poll() override {}
  void ended(const std::string& name, const std::filesystem::path& printed, std::string_view how,
             int64_t, int64_t) override {
    all.push_back(name + ' ' + std::string(how) + ' ' + printed.filename().string());
  }
  [[nodiscard]] config::Node configuration(const sweep::SweepOptions&, const sweep::Trial&,
                                           std::optional<int64_t>) const override {
    return {};
  }
  [[nodiscard]] std::string table(const std::vector<sweep::Trial>&) override { return {}; }

  std::vector<std::string> all{};
};

using ExecutorTest = ShellSweepTest;

TEST_F(ExecutorTest, RunsWaitForAPlaceAndGoOnInAnother) {
  const auto sweep = read("parameters: {a: [1, 2, 3]}\nresources: {jobs: 2}\n");
  auto host = host_of(sweep, "finish 1 1");
  OnePlace place;
  host.executor = &place;
  const auto report = sweep::run_sweep(sweep, host);
  EXPECT_EQ(report.complete, 3);
  EXPECT_EQ(report.started, 4);
  EXPECT_THAT(place.started_, ElementsAre("s0_a1", "s0_a1", "s1_a2", "s2_a3"));
  EXPECT_EQ(place.asked_, 2);
  EXPECT_THAT(rows(store(), "SELECT state FROM trials"),
              ElementsAre("COMPLETE", "COMPLETE", "COMPLETE"));
}

TEST_F(ExecutorTest, FollowsWhatAnotherCoordinatorHasStarted) {
  const auto sweep = read("parameters: {a: [1, 2]}\n");
  auto host = host_of(sweep, "finish 1 1");
  int asked = 0;  // the cells are stored, and nothing starts
  host.interrupted = [&] { return ++asked > 0; };
  EXPECT_EQ(sweep::run_sweep(sweep, host).waiting, 2);
  host.interrupted = {};
  OnePlace place;
  // As the other one has done before it started the run.
  claim_folder(files_.log_dir() / "s1_a2", sweep, sweep::read_store(store(), "s").trials.at(1));
  const auto settings = std::vector<std::string>{"a=2", "name=s1_a2"};
  place.left_["s1_a2"] = std::make_unique<Tenant>(
      ChildStart{.command = shell_run(sweep, settings, 0, "sleep 0.3; finish 2 1"),
                 .out = files_.log_dir() / "out",
                 .err = files_.log_dir() / "err"},
      false);
  host.executor = &place;
  Ends ends;
  host.recorder = &ends;
  const auto report = sweep::run_sweep(sweep, host);
  EXPECT_THAT(ends.all, ::testing::Contains("s1_a2 complete s1_a2.log"));
  EXPECT_EQ(report.complete, 2);
  EXPECT_EQ(report.started, 2);  // the other one twice: it has lost its place
  EXPECT_THAT(place.started_, ElementsAre("s0_a1", "s0_a1"));
  EXPECT_THAT(rows(store(), "SELECT value FROM trial_values ORDER BY trial_id"),
              ElementsAre("1.0", "2.0"));
}

TEST_F(ExecutorTest, RecordsARunThatEndedWhileNoCoordinatorWasThere) {
  const auto sweep = read("parameters: {a: [1]}\n");
  auto host = host_of(sweep, "finish 1 1");
  Ends ends;
  host.recorder = &ends;
  EXPECT_EQ(sweep::run_sweep(sweep, host).complete, 1);
  (void)rows(store(),
             "DELETE FROM trial_values; DELETE FROM trial_intermediate_values; "
             "UPDATE trials SET state = 'RUNNING'");
  ends.all.clear();
  const auto report = sweep::run_sweep(sweep, host);
  EXPECT_EQ(report.started, 0);
  EXPECT_EQ(report.complete, 1);
  EXPECT_THAT(ends.all, ElementsAre("s0_a1 complete s0_a1.log"));
}

}  // namespace
}  // namespace tare::testing
