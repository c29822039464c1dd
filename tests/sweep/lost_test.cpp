// Sweeps whose folder or store is deleted, replaced or older than they are, and stores made again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>

#include "sweep/query.h"
#include "sweep/shell_sweep.h"
#include "tare/base/error.h"
#include "tare/sweep/rebuild.h"
#include "tare/sweep/run_mark.h"
#include "tare/sweep/store_read.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using search::TrialState;
using sweep::RebuildReport;
using sweep::SweepReport;
using sweep::Trial;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kThree = "parameters: {a: [1, 2, 3]}\nresources: {jobs: 1}\n";

class LostTest : public ShellSweepTest {
 protected:
  /// The message of a sweep whose second run does `damage` to what it stands in.
  std::string message_after(const std::string& damage) {
    try {
      (void)run(kThree, "if test $a = 2; then cd $folder/../..; " + damage + "; fi; finish 0.$a 1");
    } catch (const IoError& error) {
      return error.what();
    }
    return "no error";
  }
  /// Returns the name and the state of each run.
  std::vector<std::string> states() const {
    return rows(store(),
                "SELECT run_name || ' ' || state FROM trials JOIN sweep_runs USING (trial_id) "
                "WHERE run_name != '' ORDER BY number");
  }
  void lose_store() const {
    for (const char* end : {"", "-wal", "-shm"}) fs::remove(store().string() + end);
  }
};

TEST_F(LostTest, AStoreThatIsDeletedMeanwhileIsAnError) {
  EXPECT_THAT(message_after("rm logs/s.sqlite"), HasSubstr("s.sqlite: the file was deleted"));
}

TEST_F(LostTest, AStoreThatIsReplacedMeanwhileIsAnError) {
  EXPECT_THAT(message_after("cp logs/s.sqlite t; mv t logs/s.sqlite"),
              HasSubstr("s.sqlite: the file was deleted or replaced"));
}

TEST_F(LostTest, ALogOfTheStoreThatIsDeletedMeanwhileIsAnError) {
  EXPECT_THAT(message_after("rm logs/s.sqlite-wal"), HasSubstr("s.sqlite-wal: the file was"));
}

TEST_F(LostTest, AFolderThatIsDeletedMeanwhileIsAnError) {
  EXPECT_THAT(message_after("rm -r logs"), HasSubstr("logs"));
}

TEST_F(LostTest, AFolderThatIsReplacedMeanwhileIsAnError) {
  EXPECT_THAT(message_after("mv logs old; cp -r old logs"),
              AnyOf(HasSubstr("logs: the folder has been replaced"),
                    HasSubstr("logs: the folder was deleted or moved")))
      << "the second between the two commands";
}

TEST_F(LostTest, RunsWithoutTheirStoreAreNotRunOverUnasked) {
  ASSERT_EQ(run(kThree, "finish 0.$a 1").complete, 3);
  lose_store();
  try {
    (void)run(kThree, "finish 0.9 1");
    ADD_FAILURE() << "they ran again";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("tare sweep rebuild"));
  }
  EXPECT_THAT(file("run_data.csv"), HasSubstr("0,s0_a1,COMPLETE,1,0.1,"));
}

// An older sweep's report lies where a run of another recipe is killed before it writes its own.
TEST_F(LostTest, AReportIsOfTheRunWhoseIdentityTheFolderNames) {
  ASSERT_EQ(run(kThree, "finish 0.$a 1").complete, 3);
  const auto old = sweep::read_store(store(), "s").trials;
  EXPECT_TRUE(sweep::is_folder_of(files_.log_dir() / "s1_a2", old[1].identity));
  io::write_atomically(files_.log_dir().parent_path() / "recipe.yaml",
                       "name: r\na: 1\nb: {c: 9}\n");
  const std::string later =
      "parameters: {a: [1, 2, 3]}\nresources: {jobs: 1}\n"
      "on_failure: {max_retries: 0}\n";
  const char* copied = "cp $folder/../s$((a - 1))_a$a/* $folder; kill -9 $$";
  const SweepReport report = run(later, copied);
  EXPECT_EQ(report.complete, 0);
  EXPECT_EQ(report.failed, 3);
  EXPECT_EQ(sweep::read_store(store(), "s").trials.size(), 6U);
}

TEST_F(LostTest, AFolderWithOtherFilesIsNotRunIn) {
  io::make_directories(files_.log_dir());
  const auto sweep = read(kThree);
  { const sweep::Store made(store(), sweep); }
  io::make_directories(files_.log_dir() / "s0_a1");
  io::write_atomically(files_.log_dir() / "s0_a1/mine", "text");
  const SweepReport report = run(kThree, "finish 0.$a 1");
  EXPECT_EQ(report.complete, 3) << "their numbers are behind that of the folder";
  EXPECT_FALSE(fs::exists(files_.log_dir() / "s0_a1/report.json"));
  EXPECT_TRUE(fs::exists(files_.log_dir() / "s1_a1/report.json"));
  Trial trial{.number = 9, .identity = "x", .run_name = "s0_a1"};
  EXPECT_THROW(claim_folder(files_.log_dir() / "s0_a1", sweep, trial), StateError);
  EXPECT_THROW(claim_folder(files_.log_dir() / "s1_a1", sweep, trial), StateError);
}

TEST_F(LostTest, AStoreOfAnotherVersionIsRefusedAndNotWritten) {
  for (const auto& [change, part] : std::vector<std::pair<std::string, std::string>>{
           {"UPDATE version_info SET schema_version = 13", "version_info.schema_version"},
           {"UPDATE alembic_version SET version_num = 'v4.0.0.a'", "alembic_version.version_num"},
           {"PRAGMA user_version = 2", "user_version"}}) {
    lose_store();
    fs::remove_all(files_.log_dir());
    ASSERT_EQ(run(kThree, "finish 0.$a 1").complete, 3);
    (void)rows(store(), change);
    const auto before = io::read_text(store());
    for (const bool writes : {true, false}) try {
        if (writes)
          (void)run(kThree, "finish 0.9 1");
        else
          (void)sweep::read_store(store(), "s");
        ADD_FAILURE() << change;
      } catch (const FormatError& error) {
        EXPECT_EQ(error.part(), part);
      }
    EXPECT_EQ(io::read_text(store()), before);
  }
}

TEST_F(LostTest, AStoreIsMadeAgainFromTheFolders) {
  const std::string text = std::string(kThree) + "on_failure: {max_retries: 1}\n";
  const std::string script =
      "test $a = 2 && exit 2; test $a = 3 && test ! -e $folder/second && touch $folder/second && "
      "kill -9 $$; finish 0.$a 1000";
  const SweepReport before = run(text, script);
  ASSERT_EQ(before.complete, 2);
  ASSERT_EQ(before.failed, 1);
  const auto sweep = read(text);
  EXPECT_THROW((void)sweep::rebuild_store(sweep), StateError) << "it is there";
  const auto old = sweep::read_store(store(), "s").trials;
  lose_store();
  const RebuildReport rebuilt = sweep::rebuild_store(sweep);
  EXPECT_EQ(rebuilt.complete, 2);
  EXPECT_EQ(rebuilt.failed, 1);
  EXPECT_EQ(rebuilt.unknown, 0);
  EXPECT_THAT(states(), ElementsAre("s0_a1 COMPLETE", "s1_a2 FAIL", "s2_a3 COMPLETE"));
  const auto now = sweep::read_store(store(), "s").trials;
  ASSERT_EQ(now.size(), old.size()) << "numbers without a gap";
  EXPECT_EQ(now[0].value, old[0].value);
  EXPECT_EQ(now[0].peak_bytes, 1000);
  EXPECT_EQ(now[0].identity, old[0].identity);
  EXPECT_LT(now[0].started - old[0].started, std::chrono::milliseconds(1));
  const SweepReport after = run(text, "finish 0.9 1");
  EXPECT_EQ(after.started, 0);
  EXPECT_EQ(after.complete, 2);
  EXPECT_THAT(rows(store(), "PRAGMA integrity_check"), ElementsAre("ok"));
}

TEST_F(LostTest, ATableAloneIsNotReplacedAndTheStoreIsMadeFromIt) {
  ASSERT_EQ(run(kThree, "finish 0.$a 1").complete, 3);
  lose_store();
  for (const char* name : {"s0_a1", "s1_a2", "s2_a3"}) fs::remove_all(files_.log_dir() / name);
  const std::string table = file("run_data.csv");
  try {
    (void)run(kThree, "finish 0.9 1");
    ADD_FAILURE() << "all runs ran again";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("tare sweep rebuild"));
  }
  EXPECT_EQ(file("run_data.csv"), table);
  EXPECT_EQ(sweep::rebuild_store(read(kThree)).complete, 3);
  EXPECT_EQ(run(kThree, "finish 0.9 1").started, 0);
  lose_store();
  io::write_atomically(files_.log_dir() / "run_data.csv", table.substr(0, table.find('\n') + 1));
  EXPECT_EQ(run(kThree, "finish 0.9 1").started, 3) << "a table without rows holds no results";
}

TEST_F(LostTest, ATableOfLossesGivesTheSameTableAgain) {
  const auto sweep = files_.read(std::string(kThree) +
                                 "metric: {name: valid_loss, goal: minimize}\n"
                                 "on_failure: {max_retries: 0}\n");
  const auto host = host_of(sweep, "test $a = 2 && exit 2; pause=0; train 0.$a 0.1$a");
  ASSERT_EQ(sweep::run_sweep(sweep, host).complete, 2);
  lose_store();
  for (const char* name : {"s0_a1", "s1_a2", "s2_a3"}) fs::remove_all(files_.log_dir() / name);
  const std::string table = file("run_data.csv");
  const RebuildReport rebuilt = sweep::rebuild_store(sweep);
  EXPECT_EQ(rebuilt.complete, 2);
  EXPECT_EQ(rebuilt.failed, 1);
  EXPECT_EQ(sweep::run_sweep(sweep, host).started, 0);
  EXPECT_EQ(file("run_data.csv"), table);
}

TEST_F(LostTest, APrunerSeesTheSameInTheNewStore) {
  const std::string text =
      "parameters: {a: [9, 5, 7, 1]}\nresources: {jobs: 1}\n"
      "pruner: {type: asha, min_resource: 1, reduction_factor: 2}\n";
  const auto attributes = [&] {
    return rows(store(),
                "SELECT number, key, value_json FROM trial_system_attributes JOIN trials "
                "USING (trial_id) WHERE key LIKE 'completed_rung_%' ORDER BY number, key");
  };
  (void)run(text, "train 0.1$a 0.2$a 0.3$a 0.4$a");
  const auto before = attributes();
  EXPECT_GE(before.size(), 5U);
  const auto old = states();
  lose_store();
  (void)sweep::rebuild_store(read(text));
  EXPECT_EQ(attributes(), before);
  EXPECT_EQ(states(), old);
}

TEST_F(LostTest, WhatWasPrunedOrUnfinishedIsSoInTheNewStore) {
  const auto sweep = read(kThree);
  ASSERT_EQ(run(kThree, "test $a = 1 && finish 0.1 1; pause=0; train 0.4 0.3").complete, 3);
  lose_store();
  fs::remove(files_.log_dir() / "s2_a3/report.json");
  std::string table = file("run_data.csv");
  table.replace(table.find("s1_a2,COMPLETE"), 14, "s1_a2,PRUNED");
  table.erase(table.find("2,s2_a3"));
  fs::remove(files_.log_dir() / "s1_a2/report.json");
  io::write_atomically(files_.log_dir() / "run_data.csv", table);
  const RebuildReport rebuilt = sweep::rebuild_store(sweep);
  EXPECT_EQ(rebuilt.pruned, 1);
  EXPECT_EQ(rebuilt.waiting, 1);
  EXPECT_THAT(states(), ElementsAre("s0_a1 COMPLETE", "s1_a2 PRUNED", "s2_a3 WAITING"));
  const SweepReport after = run(kThree, "pause=0; train 0.4 0.3 0.2");
  EXPECT_EQ(after.started, 1) << "it continues in its folder";
  EXPECT_THAT(file("s2_a3/all.csv"), HasSubstr("2,1,2,0.3,0.1\n3,1,2,0.2,0.1\n"));
}

}  // namespace
}  // namespace tare::testing
