// The main function of test programs that train on test_device(): it initialises the device before
// GoogleTest makes the tests' parameters, some of which are tensors.
#include "support/test_device.h"

#include <gtest/gtest.h>

#include "tare/runtime/init.h"

int main(int argc, char** argv) {
  if (tare::testing::test_device() != "cpu") tare::init({.threads = 0, .cuda = tare::CudaMode::on});
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
