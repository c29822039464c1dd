// Tests the meaning of device names, and which names are refused.
#include "tare/runtime/device_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tare/base/error.h"
#include "tare/memory/backend.h"

namespace tare::runtime {
namespace {

TEST(DeviceName, OfADeviceWithoutANumberAreThoseThatAreAllowed) {
  EXPECT_THAT(device_names(), ::testing::ElementsAre("auto", "cpu", "cuda"));
  for (const auto& name : device_names()) EXPECT_NO_THROW(check_device_name(name)) << name;
}

TEST(DeviceName, IsCheckedToItsLastCharacter) {
  for (const char* name : {"auto", "cpu", "cuda", "cuda:0", "cuda:127"})
    EXPECT_NO_THROW(check_device_name(name)) << name;
  for (const char* name : {"", "CPU", "gpu", "cuda:", "cuda:1x", "cuda:-1", "cuda:128", "cpu:0"})
    EXPECT_THROW(check_device_name(name), ConfigError) << name;
  EXPECT_EQ(parse_device("cpu"), c10::Device(c10::kCPU));
  EXPECT_EQ(parse_device("auto"),
            memory::devices().size() == 1 ? c10::Device(c10::kCPU) : memory::devices()[1]);
  EXPECT_THROW((void)parse_device("cuda:127"), DeviceError);
}

TEST(DeviceName, HasPartsWhetherOrNotThereIsSuchADevice) {
  const auto numbered = parts_of("cuda:12");
  ASSERT_TRUE(numbered);
  EXPECT_EQ(numbered->type, "cuda");
  EXPECT_EQ(numbered->index, 12);
  EXPECT_EQ(parts_of("npu")->index, std::nullopt);
  for (const char* name : {"cuda:", "cuda:1x", "cuda:-1", "cuda:128"})
    EXPECT_FALSE(parts_of(name)) << name;
}

}  // namespace
}  // namespace tare::runtime
