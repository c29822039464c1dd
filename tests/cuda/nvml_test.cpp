// Tests the readings of NVIDIA's management library, played by fake_nvml.cpp: needs no GPU.
#include "tare/cuda/nvml.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace tare::cuda {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

TEST(Nvml, ListsTheCardsThatMayBeAsked) {
  const auto cards = NvmlDevice::all();
  ASSERT_EQ(cards.size(), 2U);
  EXPECT_EQ(cards[0].name(), "NVIDIA \033[31mH200") << "as the driver has it";
  EXPECT_EQ(cards[0].utilisation(), 0.97);
  const auto memory = cards[0].memory();
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->total_bytes, 100 * kGiB);
  EXPECT_EQ(memory->used_bytes, 40 * kGiB);
  EXPECT_EQ(memory->free_bytes, 60 * kGiB);
  EXPECT_EQ(cards[0].temperature(), 54);
  EXPECT_FALSE(cards[1].memory()) << "no permission";
  EXPECT_FALSE(cards[1].temperature());
  EXPECT_EQ(nvml_driver_version(), "580.65.06");
}

TEST(Nvml, ListsEveryProcess) {
  const auto processes = NvmlDevice::all().at(1).processes();
  ASSERT_EQ(processes.size(), 40U) << "more than fitted at first";
  EXPECT_EQ(processes[39].id, 4'000'000'039);
  EXPECT_EQ(processes[39].bytes, 40 << 20);
}

TEST(Nvml, KnowsWhatThisProcessHolds) {
  const NvmlDevice card("0000:01:00.0");
  EXPECT_FALSE(card.process_bytes());
  EXPECT_FALSE(card.processes().at(0).bytes) << "hidden by the driver";
  ::setenv("TARE_FAKE_PROCESS", std::to_string(::getpid()).c_str(), 1);
  EXPECT_EQ(card.process_bytes(), 2 << 20);
  ::unsetenv("TARE_FAKE_PROCESS");
}

TEST(Nvml, SaysNothingOfACardThatIsNotThere) {
  const NvmlDevice card("0000:ff:00.0");
  EXPECT_EQ(card.name(), "");
  EXPECT_FALSE(card.memory());
  EXPECT_FALSE(card.utilisation());
  EXPECT_FALSE(card.temperature());
  EXPECT_TRUE(card.processes().empty());
}

}  // namespace
}  // namespace tare::cuda
