// A program adds a sampler, a pruner and an executor, and a sweep's file names them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sweep/query.h"
#include "sweep/shell_sweep.h"
#include "tare/base/error.h"
#include "tare/launch/local_executor.h"
#include "tare/search/samplers.h"

namespace tare::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// The first trial draws the middle of each range, the next ones a share of the way to its end.
struct OutwardOptions {
  double share = 0.5;
};
void visit_fields(auto& visit, OutwardOptions& o) {
  visit("share", o.share, config::between(0, 1));
}
search::Sampler outward(const OutwardOptions& options) {
  return {[share = options.share](const search::Seen& seen) -> search::Draw {
    const double way = seen.history.empty() ? 0 : share;
    return [&space = seen.space, way](search::CounterRng&) {
      search::Point point;
      for (const auto& parameter : space.parameters)
        point[parameter.name] = (parameter.range->low + parameter.range->high) / 2 +
                                way * (parameter.range->high - parameter.range->low) / 2;
      return point;
    };
  }};
}

struct AfterOptions {
  int64_t reports = 1;
};
void visit_fields(auto& visit, AfterOptions& o) {
  visit("reports", o.reports, config::at_least(1));
}
/// Ends each run after so many reports.
class EndAfter final : public search::Pruner {
 public:
  explicit EndAfter(const AfterOptions& options) : reports_(options.reports) {}
  [[nodiscard]] search::PruneResult decide(const search::Study& study,
                                           const std::vector<search::SeenTrial>&,
                                           const search::SeenTrial& trial) const override {
    return {.decision = std::ssize(trial.reports) >= reports_ ? search::PruneDecision::prune
                                                              : search::PruneDecision::proceed,
            .rungs = trial.rungs,
            .resolved = study.resolved};
  }

 private:
  int64_t reports_;
};

struct NotedOptions {
  std::string note{};
};
void visit_fields(auto& visit, NotedOptions& o) { visit("note", o.note); }
std::vector<std::string>& notes() {
  static std::vector<std::string> all;
  return all;
}
/// Notes each start.
class NotedExecutor final : public launch::LocalExecutor {
 public:
  explicit NotedExecutor(NotedOptions options) : options_(std::move(options)) {}
  std::unique_ptr<launch::Process> start(const launch::ChildStart& how) override {
    notes().push_back(options_.note + ' ' + how.name);
    return LocalExecutor::start(how);
  }

 private:
  NotedOptions options_;
};

class OpenSetsOfSweeps : public ShellSweepTest {
 protected:
  static void SetUpTestSuite() {
    search::samplers::registry().add<OutwardOptions>("outward", "from the middle outwards",
                                                     outward);
    search::pruners::registry().add<AfterOptions>(
        "end_after", "ends each run after so many epochs",
        [](const AfterOptions& o) { return std::make_shared<EndAfter>(o); });
    launch::executors::registry().add<NotedOptions>(
        "noted", "processes of this machine, with a note", [](const NotedOptions& o) {
          return launch::ExecutorType{.make = [o](const launch::ExecutorContext&) {
            return std::make_unique<NotedExecutor>(o);
          }};
        });
  }
  void SetUp() override { notes().clear(); }
};

TEST_F(OpenSetsOfSweeps, ASweepNamesWhatTheProgramAdds) {
  const auto sweep = read(
      "method: {outward: {share: 1}}\ntrials: 2\nparameters: {a: {min: 2.0, max: 4.0}}\n"
      "pruner: {type: end_after, reports: 2}\nexecutor: {type: noted, note: began}\n"
      "resources: {jobs: 1}\n");
  auto host = host_of(sweep, "train 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8");
  const auto executor = launch::executor_type(sweep.executor).make({});
  host.executor = executor.get();
  const auto report = sweep::run_sweep(sweep, host);
  EXPECT_EQ(report.pruned, 2);
  EXPECT_THAT(rows(store(), "SELECT param_value FROM trial_params ORDER BY trial_id"),
              ElementsAre("3.0", "4.0"));
  ASSERT_THAT(notes(), SizeIs(2));
  EXPECT_THAT(notes()[0], HasSubstr("began s0_a3"));
}

TEST_F(OpenSetsOfSweeps, TheirMistakesAreRefusedAtTheirPlace) {
  const auto message = [&](const std::string& text) -> std::string {
    try {
      (void)files_.read("parameters: {a: [1]}\ntrials: 1\n" + text);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(message("method: outwards\n"),
              HasSubstr("sweep.yaml:6:9: method is no sampler (did you mean \"outward\"?)"));
  EXPECT_THAT(message("method: {outward: {share: 2}}\n"),
              HasSubstr("sweep.yaml:6:27: method.outward.share must be from 0 to 1"));
  EXPECT_THAT(message("pruner: {type: end_after, reports: 0}\n"),
              HasSubstr("sweep.yaml:6:36: pruner.reports must be >= 1"));
  EXPECT_THAT(message("executor: {type: noted, nota: x}\n"),
              HasSubstr("executor.nota is not a known key (did you mean \"note\"?)"));
}

}  // namespace
}  // namespace tare::testing
