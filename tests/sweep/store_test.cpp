// The store of a sweep, in Optuna's tables.
#include "tare/sweep/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <set>

#include "sweep/query.h"
#include "sweep/support.h"
#include "tare/base/error.h"
#include "tare/launch/process.h"
#include "tare/sweep/store_read.h"

namespace tare::testing {
namespace {

using search::TrialState;
using sweep::Outcome;
using sweep::Store;
using sweep::Trial;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class StoreTest : public ::testing::Test {
 protected:
  StoreTest() { io::make_directories(files_.log_dir()); }

  sweep::SweepOptions read(const std::string& text = "parameters: {a: [1, 2], x: [sgd, adam]}\n") {
    return files_.read(text);
  }
  [[nodiscard]] std::filesystem::path path() const { return files_.log_dir() / "s.sqlite"; }
  /// With one trial for each cell, whose identity is its text.
  static void fill(Store& store, const sweep::SweepOptions& sweep) {
    const auto cells = search::grid(sweep);
    store.wait_for(cells, texts(cells));
  }
  [[nodiscard]] std::vector<std::string> query(const std::string& sql) const {
    return rows(path(), sql);
  }

  SweepFiles files_;
};

TEST(Outcome, HasTheValueOfTheWeightsThatTheRunEndedWith) {
  EXPECT_EQ((Outcome{.values = {3, 1, 2}}.value()), 2);
  EXPECT_EQ((Outcome{.values = {3, 1, 2}, .restored_epoch = 2}.value()), 1);
  EXPECT_EQ((Outcome{.values = {3}, .restored_epoch = 2}.value()), 3) << "a table that was cut";
  EXPECT_EQ((Outcome{.values = {3, 1, 2}, .restored_epoch = 2, .restored_value = 0.5}.value()), 0.5)
      << "of a validation inside that epoch";
  EXPECT_TRUE(std::isnan(Outcome{}.value()));
}

// optuna_schema.txt was written by Optuna itself.
TEST_F(StoreTest, HasOptunasTables) {
  const auto sweep = read();
  { const Store store(path(), sweep); }
  std::istringstream golden(
      io::read_text(std::filesystem::path(TARE_GOLDEN) / "optuna_schema.txt"));
  std::set<std::string> tables;
  std::vector<std::string> wanted;
  for (std::string line; std::getline(golden, line);) {
    const std::string table = line.substr(0, line.find(' '));
    if (table == "schema") {
      EXPECT_EQ("schema " + query("SELECT schema_version FROM version_info").at(0), line);
    } else if (table == "head") {
      EXPECT_EQ("head " + query("SELECT version_num FROM alembic_version").at(0), line);
    } else {
      tables.insert(table);
      wanted.push_back(line);
    }
  }
  ASSERT_GE(tables.size(), 12U);
  std::vector<std::string> found;
  for (const auto& table : tables)
    for (const auto& row :
         query("SELECT '" + table + "', name, type, \"notnull\", pk FROM pragma_table_info('" +
               table + "')"))
      found.push_back(row);
  EXPECT_EQ(found, wanted);
  EXPECT_THAT(query("PRAGMA journal_mode"), ElementsAre("wal"));
}

TEST_F(StoreTest, KeepsATrialFromWaitingToItsEnd) {
  const auto sweep =
      read("metric: {name: acc, goal: maximize}\nparameters: {a: [1, 2], x: [sgd, adam]}\n");
  {
    Store store(path(), sweep);
    fill(store, sweep);
    const auto trials = store.trials();
    ASSERT_EQ(trials.size(), 4U);
    EXPECT_EQ(trials[3].run_name, "s3_a2_xadam");
    store.start(trials[3], {.pid = 17, .boot_id = "b", .started_ticks = 9}, 1000);
    store.finish(trials[3], {.state = TrialState::complete,
                             .values = {0.5, NAN, INFINITY, 0.75},
                             .peak_bytes = 900,
                             .seconds = 1.5});
    store.start(trials[0], {.pid = 18, .boot_id = "b", .started_ticks = 9}, 1000);
    store.finish(trials[0], {.reason = "exit 2", .exit_code = 2});
  }
  const Store again(path(), sweep);
  const auto trials = again.trials();
  EXPECT_EQ(trials[3].state, TrialState::complete);
  EXPECT_EQ(trials[3].value, 0.75);
  EXPECT_EQ(trials[3].peak_bytes, 900);
  EXPECT_EQ(trials[3].child.pid, 17);
  EXPECT_EQ(trials[3].cell.find("x")->text, "adam");
  EXPECT_EQ(trials[0].state, TrialState::failed);
  EXPECT_EQ(trials[0].reason, "exit 2");
  EXPECT_THAT(query("SELECT step, intermediate_value, intermediate_value_type FROM "
                    "trial_intermediate_values ORDER BY step"),
              ElementsAre("1 0.5 FINITE", "2 - NAN", "3 - INF_POS", "4 0.75 FINITE"));
  EXPECT_THAT(query("SELECT param_name, param_value, distribution_json FROM trial_params p JOIN "
                    "trials t USING (trial_id) WHERE t.number = 3 ORDER BY param_name"),
              ElementsAre("a 1.0 {\"name\":\"CategoricalDistribution\",\"attributes\":{\"choices\":"
                          "[1,2]}}",
                          "x 1.0 {\"name\":\"CategoricalDistribution\",\"attributes\":{\"choices\":"
                          "[\"sgd\",\"adam\"]}}"));
  EXPECT_THAT(query("SELECT direction FROM study_directions"), ElementsAre("MAXIMIZE"));
  EXPECT_THAT(query("PRAGMA integrity_check"), ElementsAre("ok"));
}

TEST_F(StoreTest, AddsNewCellsAndDropsWaitingOnesThatHaveGone) {
  const auto sweep = read();
  Store store(path(), sweep);
  fill(store, sweep);
  store.start(store.trials()[0], {}, 0);
  store.finish(store.trials()[0], {.state = TrialState::complete, .values = {1}});
  fill(store, sweep);
  EXPECT_EQ(store.trials().size(), 4U) << "each once";
  const auto fewer = read("parameters: {a: [2, 3], x: [sgd]}\n");
  fill(store, fewer);
  std::vector<std::string> left;
  for (const Trial& trial : store.trials())
    if (trial.reason != sweep::kDropped) left.push_back(trial.run_name);
  EXPECT_THAT(left, ElementsAre("s0_a1_xsgd", "s2_a2_xsgd", "s4_a3_xsgd")) << "no number again";
  fill(store, sweep);
  EXPECT_EQ(store.trials().back().run_name, "s6_a2_xadam") << "what was dropped comes back";
  EXPECT_THAT(query("SELECT count(*) = max(number) + 1 FROM trials"), ElementsAre("1"))
      << "Optuna counts rows";
}

// Optuna refuses a study whose trials have other choices.
TEST_F(StoreTest, ChoicesAreOnlyAddedAndEqualInAllTrials) {
  const auto run_all = [&](const sweep::SweepOptions& sweep) {
    Store store(path(), sweep);
    fill(store, sweep);
    for (const Trial& trial : store.trials()) {
      if (trial.state != TrialState::waiting) continue;
      store.start(trial, {}, 0);
      store.finish(trial, {.state = TrialState::complete, .values = {1}});
    }
  };
  run_all(read("parameters: {a: [1, 2], r: {min: 0, max: 1}}\n"));
  run_all(read("parameters: {a: [5, 2.0], r: {min: 0, max: 1}}\n"));
  EXPECT_THAT(query("SELECT DISTINCT distribution_json FROM trial_params WHERE param_name = 'a'"),
              ElementsAre("{\"name\":\"CategoricalDistribution\",\"attributes\":{\"choices\":"
                          "[1,2,5]}}"));
  EXPECT_THAT(query("SELECT group_concat(param_value) FROM trial_params WHERE param_name = 'a'"),
              ElementsAre("0.0,0.0,1.0,1.0,2.0,2.0,1.0,1.0"))
      << "2.0 is another run here, but the same choice";
}

TEST_F(StoreTest, IsReadWithoutBeingWritten) {
  const auto sweep = read();
  EXPECT_THROW((void)sweep::read_store(path(), "s"), IoError);
  {
    Store store(path(), sweep);
    fill(store, sweep);
  }
  const auto contents = sweep::read_store(path(), "s");
  EXPECT_EQ(contents.trials.size(), 4U);
  EXPECT_EQ(contents.coordinator.pid, getpid());
  EXPECT_TRUE(is_alive(contents.coordinator));
  EXPECT_THROW((void)sweep::read_store(path(), "other"), FormatError);
}

TEST_F(StoreTest, ARetryIsANewTrialOfTheSameRun) {
  const auto sweep = read("parameters: {a: [1]}\n");
  Store store(path(), sweep);
  fill(store, sweep);
  (void)store.finish_and_retry(store.trials()[0], {.reason = "out of memory"}, 4096);
  const auto trials = store.trials();
  ASSERT_EQ(trials.size(), 2U);
  EXPECT_EQ(trials[1].run_name, trials[0].run_name);
  EXPECT_EQ(trials[1].attempt, 1);
  EXPECT_EQ(trials[0].reason, "out of memory");
  EXPECT_EQ(trials[1].asked_bytes, 4096);
  EXPECT_THAT(query("SELECT \"key\", value_json FROM trial_system_attributes WHERE trial_id = 2 "
                    "ORDER BY \"key\""),
              ElementsAre("failed_trial 0", "fixed_params {\"a\":1}", "retry_history [0]"));
}

TEST_F(StoreTest, RefusesAnotherMetricAndAnotherFile) {
  const auto first = read();
  { const Store store(path(), first); }
  const auto other = read("metric: {name: valid_loss, goal: maximize}\n");
  EXPECT_THROW(Store(path(), other), ConfigError);
  const auto renamed = read("metric: {name: accuracy}\n");
  EXPECT_THROW(Store(path(), renamed), ConfigError);
  io::write_atomically(files_.log_dir() / "text", "no database, but long enough to be read as one");
  const auto sweep = read();
  try {
    const Store store(files_.log_dir() / "text", sweep);
    ADD_FAILURE() << "a text was accepted";
  } catch (const FormatError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("not a store of a sweep"), HasSubstr("rebuild")));
  }
  EXPECT_THROW(Store(files_.log_dir() / "nowhere" / "s.sqlite", sweep), IoError);
}

TEST_F(StoreTest, ACellWhoseRowWasDeletedRunsAgain) {
  const auto sweep = read();
  {
    Store store(path(), sweep);
    fill(store, sweep);
    for (const Trial& trial : store.trials()) {
      store.start(trial, {}, 0);
      store.finish(trial, {.state = TrialState::complete, .values = {1}});
    }
  }
  (void)query("DELETE FROM trials WHERE number = 3");
  Store store(path(), sweep);
  fill(store, sweep);
  const auto trials = store.trials();
  ASSERT_EQ(trials.size(), 4U);
  EXPECT_EQ(trials[3].state, TrialState::waiting);
  EXPECT_THAT(query("SELECT count(*) FROM trial_values"), ElementsAre("3"));
}

TEST_F(StoreTest, AStudyThatOptunaMadeHasNumbersToo) {
  const auto sweep = read();
  { const Store store(path(), sweep); }
  (void)query("DELETE FROM sweep_numbers");
  Store store(path(), sweep);
  fill(store, sweep);
  EXPECT_THAT(query("SELECT number FROM trials ORDER BY number"), ElementsAre("0", "1", "2", "3"));
}

TEST_F(StoreTest, AWaitingRunHasTheSettingsOfTheFileNow) {
  const auto sweep = read("parameters: {a: [1]}\n");
  Store store(path(), sweep);
  fill(store, sweep);
  const auto cells = search::grid(read("parameters: {a: [1], x: [sgd]}\n"));
  store.wait_for(cells, texts(search::grid(sweep)));
  ASSERT_EQ(store.trials().size(), 1U);
  EXPECT_TRUE(store.trials()[0].cell.find("x"));
}

TEST_F(StoreTest, NumbersGoOnAfterTrialsOfOptuna) {
  const auto sweep = read("parameters: {a: [1]}\n");
  {
    Store store(path(), sweep);
    fill(store, sweep);
  }
  (void)query("INSERT INTO trials (number, study_id, state) VALUES (1, 1, 'COMPLETE')");
  const auto more = read("parameters: {a: [1, 2]}\n");
  Store store(path(), more);
  fill(store, more);
  EXPECT_EQ(store.trials().back().number, 2);
}

}  // namespace
}  // namespace tare::testing
