// Tests what init() refuses and sets up, in a process of its own for each case.
#include "tare/runtime/init.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <string>

#include "runtime/init_outcome.h"
#include "tare/runtime/threads.h"

namespace tare {
namespace {

using ::testing::HasSubstr;

/// `environment` is in env(1)'s form.
testing::InitOutcome probe(const std::string& thing, const std::string& environment = "") {
  return testing::run_init_probe(testing::init_probe(), thing, environment);
}

class InitTooLate : public ::testing::TestWithParam<const char*> {};

TEST_P(InitTooLate, IsAStateError) {
  const auto outcome = probe(GetParam());
  EXPECT_EQ(outcome.code, 10) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("make tare::init() the first line of main"));
  EXPECT_THAT(outcome.text, HasSubstr("initialized 0"));
}

INSTANTIATE_TEST_SUITE_P(After, InitTooLate,
                         ::testing::Values("tensor", "seed", "has_cuda", "backward", "conv2d",
                                           "foreign_allocator"));

TEST(Init, AcceptsTheFirstLineOfMain) {
  const auto outcome = probe("nothing");
  EXPECT_EQ(outcome.code, 0) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("initialized 1"));
}

TEST(Init, DoesNothingTheSecondTime) { EXPECT_EQ(probe("twice").code, 0); }

TEST(Init, SetsTheThreadsAskedFor) {
  EXPECT_THAT(probe("threads_1", "OMP_NUM_THREADS=2").text, HasSubstr("threads 1"));
}

TEST(Init, TakesTheEnvironmentsThreads) {
  EXPECT_THAT(probe("nothing", "-u MKL_NUM_THREADS OMP_NUM_THREADS=1").text,
              HasSubstr("threads 1"));
}

TEST(Init, TakesWhatTheProcessMayUseOtherwise) {
  EXPECT_THAT(probe("nothing", "-u OMP_NUM_THREADS -u MKL_NUM_THREADS").text,
              HasSubstr("threads " + std::to_string(runtime::usable_processors())));
}

TEST(Init, TakesAnAffinityOfOne) {
  EXPECT_THAT(probe("nothing", "-u OMP_NUM_THREADS -u MKL_NUM_THREADS taskset 1").text,
              HasSubstr("threads 1"));
}

// Pages of a block mapped on its own are new, and fault, each time.
TEST(Init, KeepsLargeBlocksInTheHeap) {
  EXPECT_THAT(
      probe("nothing", "-u GLIBC_TUNABLES -u MALLOC_MMAP_THRESHOLD_ -u MALLOC_TRIM_THRESHOLD_")
          .text,
      HasSubstr("mapped 0\n"));
}

TEST(Init, LeavesMallocAloneWhenTheUserTunedIt) {
  if (mallinfo2().arena == 0) GTEST_SKIP() << "malloc is not glibc's: a sanitizer is at work";
  EXPECT_THAT(probe("nothing", "MALLOC_MMAP_THRESHOLD_=1000000").text,
              ::testing::Not(HasSubstr("mapped 0\n")));
}

TEST(Init, RejectsNegativeThreads) { EXPECT_EQ(probe("negative_threads").code, 11); }

TEST(Init, RunsWithoutCudaWhereItIsSwitchedOff) { EXPECT_EQ(probe("cuda_off").code, 0); }

TEST(Init, SaysWhyThereIsNoCuda) {
  const auto outcome = probe("cuda_on");
  if (outcome.code == 0) GTEST_SKIP() << "there is a CUDA device";
  EXPECT_EQ(outcome.code, 12) << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("[tare::init] "));
}

TEST(BoundSpinning, ExecutesTheProgramAnewOnce) {
  EXPECT_EQ(probe("spin", "-u GOMP_SPINCOUNT -u OMP_WAIT_POLICY").text, "spin 1000\n");
}

TEST(BoundSpinning, LeavesTheUsersChoiceAlone) {
  EXPECT_EQ(probe("spin", "-u OMP_WAIT_POLICY GOMP_SPINCOUNT=7").text, "spin 7\n");
  EXPECT_EQ(probe("spin", "-u GOMP_SPINCOUNT OMP_WAIT_POLICY=passive").text, "spin unset\n");
}

}  // namespace
}  // namespace tare
