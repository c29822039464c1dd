// Which rank a process is, by the variables of torchrun, Slurm and Open MPI.
#include "tare/parallel/world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "support/outcome.h"

namespace tare::parallel {
namespace {

using ::testing::HasSubstr;
using testing::outcome_of;
using Variables = std::map<std::string, std::string>;

World world_with(const Variables& variables) {
  return world_of([&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

std::string refusal(const Variables& variables) {
  return outcome_of([&] { (void)world_with(variables); });
}

const Variables kTorchrun{{"RANK", "2"},
                          {"WORLD_SIZE", "4"},
                          {"LOCAL_RANK", "0"},
                          {"LOCAL_WORLD_SIZE", "2"},
                          {"MASTER_ADDR", "n1"},
                          {"MASTER_PORT", "29500"},
                          {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                          {"TORCHELASTIC_RESTART_COUNT", "3"}};

Variables without(Variables all, const std::string& name) {
  all.erase(name);
  return all;
}

Variables with(Variables all, const std::string& name, const std::string& value) {
  all[name] = value;
  return all;
}

TEST(World, IsAloneWithoutVariables) {
  const World world = world_with({});
  EXPECT_TRUE(world.is_alone());
  EXPECT_EQ(world.started_by, "");
}

TEST(World, IsThatOfTorchrun) {
  const World world = world_with(kTorchrun);
  EXPECT_EQ(world.rank, 2);
  EXPECT_EQ(world.size, 4);
  EXPECT_EQ(world.local_rank, 0);
  EXPECT_EQ(world.local_size, 2);
  EXPECT_EQ(world.address, "n1");
  EXPECT_EQ(world.port, 29500);
  EXPECT_TRUE(world.store_is_served);
  EXPECT_EQ(world.attempt, 3);
  EXPECT_EQ(world.started_by, "torchrun");
  EXPECT_FALSE(world_with(without(kTorchrun, "TORCHELASTIC_USE_AGENT_STORE")).store_is_served);
}

TEST(World, IsThatOfATaskOfSlurm) {
  const Variables step{{"SLURM_PROCID", "1"},       {"SLURM_STEP_NUM_TASKS", "3"},
                       {"SLURM_LOCALID", "1"},      {"SLURM_JOB_ID", "77"},
                       {"SLURM_STEP_ID", "0"},      {"SLURM_STEP_NODELIST", "gpu[03-05,9],cpu1"},
                       {"SLURM_RESTART_COUNT", "1"}};
  const World world = world_with(step);
  EXPECT_EQ(world.rank, 1);
  EXPECT_EQ(world.size, 3);
  EXPECT_EQ(world.address, "gpu03");
  EXPECT_EQ(world.attempt, 1);
  EXPECT_EQ(world.started_by, "srun");
  EXPECT_GE(world.port, 1024);
  EXPECT_EQ(world_with(with(step, "SLURM_PROCID", "2")).port, world.port);
  EXPECT_NE(world_with(with(step, "SLURM_JOB_ID", "78")).port, world.port);
  EXPECT_EQ(world_with(with(step, "SLURM_STEP_NODELIST", "n7")).address, "n7");
  EXPECT_EQ(world_with(with(step, "SLURM_STEP_NODELIST", "n7,n9[1-2]")).address, "n7");
  const World here = world_with(with(step, "SLURM_STEP_NUM_NODES", "1"));
  EXPECT_EQ(here.address, "127.0.0.1");
  EXPECT_EQ(here.local_size, 3);
  // The script of a batch job is no task of a step.
  EXPECT_TRUE(world_with(without(step, "SLURM_STEP_NUM_TASKS")).is_alone());
  EXPECT_EQ(world_with(with(step, "SLURM_NTASKS_PER_NODE", "8")).local_size, 3);
  EXPECT_THAT(refusal(with(step, "MASTER_PORT", "9")), HasSubstr("MASTER_ADDR is missing"));
}

TEST(World, IsThatOfOpenMpi) {
  const Variables task{{"OMPI_COMM_WORLD_RANK", "1"},
                       {"OMPI_COMM_WORLD_SIZE", "2"},
                       {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                       {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                       {"PMIX_NAMESPACE", "prterun-n1-4242@1"}};
  const World world = world_with(task);
  EXPECT_EQ(world.rank, 1);
  EXPECT_EQ(world.address, "127.0.0.1");
  EXPECT_EQ(world.started_by, "mpirun");
  EXPECT_THAT(refusal(with(with(task, "OMPI_COMM_WORLD_LOCAL_SIZE", "1"),
                           "OMPI_COMM_WORLD_LOCAL_RANK", "0")),
              HasSubstr("give mpirun -x MASTER_ADDR=HOST -x MASTER_PORT=PORT"));
}

TEST(World, RefusesWhatNamesNoRank) {
  EXPECT_THAT(refusal(with(kTorchrun, "RANK", "4")),
              HasSubstr("RANK must be a whole number, got 4; allowed: 0 to 3"));
  EXPECT_THAT(refusal(with(kTorchrun, "RANK", "two")), HasSubstr("RANK must be a whole number"));
  EXPECT_THAT(refusal(with(kTorchrun, "WORLD_SIZE", "0")), HasSubstr("WORLD_SIZE must be"));
  EXPECT_THAT(refusal(without(kTorchrun, "WORLD_SIZE")), HasSubstr("WORLD_SIZE is missing"));
  EXPECT_THAT(refusal(without(kTorchrun, "MASTER_ADDR")), HasSubstr("MASTER_ADDR is missing"));
  EXPECT_THAT(refusal(with(kTorchrun, "MASTER_PORT", "70000")), HasSubstr("1 to 65535"));
}

}  // namespace
}  // namespace tare::parallel
