// Tests the abilities of executors by their type.
#include "tare/launch/executors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/launch/local_executor.h"
#include "tare/launch/slurm_files.h"

namespace tare::testing {
namespace {

using launch::ProcessId;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(ExecutorType, EachMakesAnExecutorThatTouchesNothing) {
  for (const std::string name : {"local", "slurm"}) {
    const auto type = launch::executor_type({.name = name});
    const auto executor = type.make({.folder = "/no/such", .agent = {"agent"}});
    ASSERT_TRUE(executor) << name;
    EXPECT_EQ(executor->has_own_memory_limits(), type.is_remote) << name;
    EXPECT_GT(executor->poll_interval().count(), 0) << name;
    EXPECT_FALSE(std::filesystem::exists("/no/such"));
  }
}

TEST(ExecutorType, ThisMachineHasNoSlotsOfItsOwn) {
  const auto local = launch::executor_type({.name = "local"}).make({});
  EXPECT_THAT(local->slots(3), IsEmpty());
  EXPECT_NO_THROW(local->require_available());
}

TEST(SlurmFiles, TheHeartbeatIsAFileOfThatName) {
  const TempDir folder;
  EXPECT_EQ(launch::read_heartbeat(folder.path()), "");
  io::write_atomically(folder / "heartbeat", "7");
  EXPECT_EQ(launch::read_heartbeat(folder.path()), "7");
}

TEST(ExecutorType, AClusterHasAsManySlotsAsAreAskedFor) {
  const auto slurm = launch::executor_type({.name = "slurm"}).make({});
  ASSERT_THAT(slurm->slots(3), SizeIs(1));
  EXPECT_EQ(slurm->slots(3)[0].jobs, 3);
  EXPECT_GT(slurm->slots(0)[0].jobs, 3);
  EXPECT_TRUE(slurm->slots(3)[0].is_remote());
  EXPECT_FALSE(slurm->slots(3)[0].is_gpu());
}

launch::ExecutorChoice choice(const std::string& yaml) {
  return config::read<launch::ExecutorChoice>(config::parse_text(yaml, "e.yaml"));
}

TEST(ExecutorType, WhatIsWrongIsRefusedAtItsPlace) {
  const auto message = [](const std::string& yaml) -> std::string {
    try {
      (void)choice(yaml);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(message("slurmm"), HasSubstr("type is no executor (did you mean \"slurm\"?)"));
  EXPECT_THAT(message("{type: local, setup: [module load cuda]}"),
              HasSubstr("e.yaml:1:15: setup is not a known key; there are no options"));
  EXPECT_THAT(message("{type: slurm, options: [--array=1]}"),
              HasSubstr("e.yaml:1:24: options has an option that the sweep sets itself"));
  EXPECT_EQ(message("{type: slurm, setup: [module load cuda]}"), "accepted");
  EXPECT_EQ(config::to_yaml(config::to_node(choice("slurm"))),
            "type: slurm\noptions: []\nsetup: []\nsave_before_s: 90\n");
}

TEST(ExecutorType, AgentsAreServedByTheTypeThatStartsThem) {
  launch::executors::registry().add("answering", "agents that return at once", [] {
    return launch::ExecutorType{.serve = [](const std::filesystem::path&) { return 7; }};
  });
  EXPECT_EQ(launch::serve_agent("answering", "/no/such"), 7);
  EXPECT_THROW((void)launch::serve_agent("local", "/no/such"), ConfigError);
  EXPECT_THROW((void)launch::serve_agent("nobody", "/no/such"), ConfigError);
}

TEST(LocalExecutor, DoesNotTouchWhatMayRunInACluster) {
  launch::LocalExecutor local;
  EXPECT_TRUE(local.recover({ProcessId{.pid = 1}}).empty());
  try {
    (void)local.recover({ProcessId::of_executor("slurm")});
    FAIL() << "it was taken to have ended";
  } catch (const StateError& error) {
    EXPECT_THAT(error.what(), HasSubstr("executor: slurm"));
  }
}

}  // namespace
}  // namespace tare::testing
