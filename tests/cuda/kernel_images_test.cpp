// Which cards a LibTorch has kernels for, by nvcc's flags in its configuration.
#include "tare/cuda/kernel_images.h"

#include <gtest/gtest.h>

namespace tare::cuda {
namespace {

TEST(KernelImages, RunOnLaterCardsOfTheSameMajorVersion) {
  const auto kernels = KernelImages::parse(
      "  - CUDA Runtime 13.0\n  - NVCC architecture flags: -gencode;arch=compute_75,code=sm_75;"
      "-gencode;arch=compute_80,code=sm_80;-gencode;arch=compute_100,code=sm_100;"
      "-gencode;arch=compute_90a,code=sm_90a\n");
  EXPECT_EQ(kernels.str(), "7.5, 8.0, 10.0");
  for (const Capability card : {Capability{7, 5}, {8, 0}, {8, 6}, {10, 0}, {10, 3}})
    EXPECT_TRUE(kernels.run_on(card)) << card.str();
  for (const Capability card : {Capability{5, 0}, {6, 1}, {7, 0}, {9, 0}, {11, 0}, {12, 0}})
    EXPECT_FALSE(kernels.run_on(card)) << card.str();
}

TEST(KernelImages, SourcesRunOnAllLaterCards) {
  const auto kernels = KernelImages::parse("code=sm_80;-gencode;arch=compute_90,code=compute_90");
  EXPECT_EQ(kernels.str(), "8.0, 9.0");
  EXPECT_TRUE(kernels.run_on({12, 0}));
  EXPECT_TRUE(kernels.run_on({8, 9}));
  EXPECT_FALSE(kernels.run_on({7, 5}));
}

TEST(KernelImages, UnknownOnesRefuseNoCard) {
  EXPECT_TRUE(KernelImages::parse("").run_on({5, 0}));
  EXPECT_TRUE(KernelImages::parse("code=sm_").run_on({5, 0}));
}

}  // namespace
}  // namespace tare::cuda
