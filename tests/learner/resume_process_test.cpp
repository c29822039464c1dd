// A fit that is resumed in a new process.
#include <gtest/gtest.h>

#include "support/program.h"

namespace tare::testing {
namespace {

TEST(Resume, InANewProcessEqualsTheStraightRunBitForBit) {
  const TempDir folder;
  const auto straight = run_program("resume_probe", {"straight", folder.path().string()});
  ASSERT_EQ(straight.status, 0) << straight.err;
  const auto resumed = run_program("resume_probe", {"resume", folder.path().string()});
  ASSERT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_GT(straight.out.size(), 1000U);
  EXPECT_EQ(straight.out, resumed.out);
}

}  // namespace
}  // namespace tare::testing
