// What executors can do, asked by type.
#include "tare/launch/executors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tare/base/error.h"
#include "tare/launch/local_executor.h"

namespace tare::testing {
namespace {

using launch::ProcessId;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(ExecutorType, EachMakesAnExecutorThatTouchesNothing) {
  for (const auto& type : launch::executor_types()) {
    const auto executor =
        type.make({.options = {.type = type.name}, .folder = "/no/such", .agent = {"agent"}});
    ASSERT_TRUE(executor) << type.name;
    EXPECT_EQ(executor->has_own_memory_limits(), type.is_remote) << type.name;
    EXPECT_GT(executor->poll_interval().count(), 0) << type.name;
    EXPECT_FALSE(std::filesystem::exists("/no/such"));
  }
}

TEST(ExecutorType, ThisMachineHasNoSlotsOfItsOwn) {
  const auto local = launch::executor_type("local").make({});
  EXPECT_THAT(local->slots(3), IsEmpty());
  EXPECT_NO_THROW(local->require_available());
}

TEST(ExecutorType, AClusterHasAsManySlotsAsAreAskedFor) {
  const auto slurm = launch::executor_type("slurm").make({});
  ASSERT_THAT(slurm->slots(3), SizeIs(1));
  EXPECT_EQ(slurm->slots(3)[0].jobs, 3);
  EXPECT_GT(slurm->slots(0)[0].jobs, 3);
  EXPECT_TRUE(slurm->slots(3)[0].is_remote());
  EXPECT_FALSE(slurm->slots(3)[0].is_gpu());
}

TEST(ExecutorType, OneThatIsNotKnownIsRefused) {
  EXPECT_THROW((void)launch::executor_type("ray"), ConfigError);
  EXPECT_THROW(launch::check({.type = "local", .setup = {"module load cuda"}}), ConfigError);
  EXPECT_NO_THROW(launch::check({.type = "slurm", .setup = {"module load cuda"}}));
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
