// Against a stand-in for NVIDIA's library, which has three cards and may be asked about two.
#include "tare/sweep/gpu_slots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tare::sweep {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> names(const char* visible) {
  std::vector<std::string> all;
  for (const auto& slot : gpu_slots({}, visible)) all.push_back(slot.name);
  return all;
}

TEST(GpuSlots, AreTheCardsWhoseMemoryIsKnown) {
  const auto slots = gpu_slots({.max_per_gpu = 3}, nullptr);
  ASSERT_EQ(slots.size(), 1U);
  EXPECT_EQ(slots[0].name, "GPU-0a0a");
  EXPECT_EQ(slots[0].total_bytes, int64_t{60} << 30) << "what is free";
  EXPECT_EQ(slots[0].jobs, 3);
  EXPECT_GT(slots[0].context_bytes, 0);
  EXPECT_TRUE(slots[0].is_gpu());
}

TEST(GpuSlots, AreThoseThatCudaMaySee) {
  EXPECT_THAT(names(""), IsEmpty()) << "as CUDA reads a variable that is set to nothing";
  EXPECT_THAT(names("0"), ElementsAre("GPU-0a0a"));
  EXPECT_THAT(names("GPU-0a"), ElementsAre("GPU-0a0a"));
  EXPECT_THAT(names("GPU-0a0a,GPU-2c"), ElementsAre("GPU-0a0a"));
  EXPECT_THAT(names("2"), IsEmpty()) << "the third says nothing of its memory";
  EXPECT_THAT(names("1"), IsEmpty()) << "the second may not be asked";
  EXPECT_THAT(names("7,0"), IsEmpty()) << "nothing behind one that is not there";
  EXPECT_THAT(names("-1"), IsEmpty());
}

TEST(VisibleGpus, AreInTheOrderOfCudasIndices) {
  const auto all = visible_gpus(nullptr);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].name, "GPU-0a0a");
  EXPECT_TRUE(has_capacity(all[0]));
  EXPECT_EQ(all[1].name, "GPU-2c2c");
  EXPECT_FALSE(has_capacity(all[1])) << "its memory is not known";
  const auto turned = visible_gpus("GPU-2c2c,0");
  ASSERT_EQ(turned.size(), 2U);
  EXPECT_EQ(turned[0].name, "GPU-2c2c");
  EXPECT_EQ(turned[1].name, "GPU-0a0a");
  EXPECT_EQ(turned[1].short_name(), "cuda:1");
  EXPECT_EQ(turned[1].full_name(), "cuda:1 (GPU-0a0a)");
  EXPECT_EQ(launch::DeviceSlot{.name = "host"}.full_name(), "host");
}

}  // namespace
}  // namespace tare::sweep
