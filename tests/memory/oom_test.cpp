// Out-of-memory errors of all libraries, recognised and worded.
#include "tare/memory/oom.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/relu.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>

#include "tare/memory/host_allocator.h"

namespace tare::memory {
namespace {

template <class E>
std::optional<OutOfMemoryInfo> classified(const E& error) {
  return classify(std::make_exception_ptr(error));
}

TEST(OutOfMemory, SaysEverythingInOneLine) {
  const OutOfMemory error(c10::kCPU, 3 << 20, 5 << 20, 6 << 20);
  EXPECT_STREQ(error.what_without_backtrace(),
               "[memory.allocate] out of memory on cpu: asked for 3 MiB beside the 5 MiB "
               "allocated, which makes 8 MiB of a budget of 6 MiB; raise the budget, or take a "
               "smaller batch or model");
  EXPECT_STREQ(error.what(), error.what_without_backtrace());
}

TEST(OutOfMemory, IsCaughtAsLibTorchsType) {
  host_allocator::fail_at(1);
  EXPECT_THROW(at::ones({4}), c10::OutOfMemoryError);
}

TEST(Classify, KnowsOurType) {
  const auto info = classified(OutOfMemory(c10::kCPU, 7, 0));
  ASSERT_TRUE(info);
  EXPECT_EQ(info->source, OutOfMemorySource::tare);
  EXPECT_EQ(info->device, c10::Device(c10::kCPU));
  EXPECT_EQ(info->asked_bytes, 7);
}

TEST(Classify, KnowsLibTorchsType) {
  const auto info = classified(c10::OutOfMemoryError(
      "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 8 GiB"));
  ASSERT_TRUE(info);
  EXPECT_EQ(info->source, OutOfMemorySource::libtorch);
  EXPECT_EQ(info->asked_bytes, int64_t{5} << 29);
}

TEST(Classify, WordsTheRefusalOfACardAsItsOwn) {
  const std::string head =
      "CUDA out of memory. Tried to allocate 32.00 MiB. GPU 1 has a total capacity of 56.00 MiB of "
      "which 22.00 MiB is free. Including non-PyTorch memory, this process has 34.00 MiB memory in "
      "use. ";
  const std::string tail = "Of the allocated memory 15.82 MiB is allocated by PyTorch.";
  const auto full = classified(c10::OutOfMemoryError(head + tail));
  ASSERT_TRUE(full);
  EXPECT_EQ(
      full->message,
      "[memory.allocate] out of memory on cuda:1: asked for 32 MiB, and 22 MiB of 56 MiB is "
      "free; take a smaller batch or model, or another card: `tare top` shows which processes "
      "hold the memory of each");
  EXPECT_EQ(full->detail, head.substr(0, head.size() - 1));
  const auto budget = classified(c10::OutOfMemoryError(head + "40.00 MiB allowed; " + tail));
  ASSERT_TRUE(budget);
  EXPECT_EQ(budget->message,
            "[memory.allocate] out of memory on cuda:1: asked for 32 MiB, which is above what is "
            "left of a budget of 40 MiB; raise the budget, or take a smaller batch or model");
  EXPECT_EQ(classified(OutOfMemory(c10::kCPU, 7, 0))->detail, "");
}

TEST(Classify, KnowsTheErrorOfLibTorchsOwnHostAllocator) {
  try {
    c10::GetDefaultCPUAllocator()->allocate(size_t{1} << 60);
    FAIL() << "an exbibyte was granted";
  } catch (...) {
    const auto info = classify(std::current_exception());
    ASSERT_TRUE(info);
    EXPECT_EQ(info->source, OutOfMemorySource::libtorch);
    EXPECT_EQ(info->device, c10::Device(c10::kCPU));
    EXPECT_EQ(info->asked_bytes, int64_t{1} << 60);
  }
}

TEST(Classify, KnowsTheRunTimesErrorCode) {
  const c10::SourceLocation here{"", "", 0};
  EXPECT_EQ(classified(c10::AcceleratorError(here, 2, "CUDA error: any text"))->source,
            OutOfMemorySource::cuda);
  EXPECT_FALSE(classified(
      c10::AcceleratorError(here, 700, "CUDA error: an illegal memory access was encountered")));
}

TEST(Classify, KnowsBadAlloc) {
  EXPECT_EQ(classified(std::bad_alloc())->source, OutOfMemorySource::standard_library);
}

class ClassifyText : public ::testing::TestWithParam<const char*> {};

TEST_P(ClassifyText, IsOutOfMemory) {
  const auto info = classified(std::runtime_error(std::string("while running: ") + GetParam()));
  ASSERT_TRUE(info);
  EXPECT_TRUE(info->certain);
  EXPECT_EQ(info->message.find('\n'), std::string::npos);
  EXPECT_TRUE(classified(c10::Error(std::string(GetParam()) + "\nmore")));
}

INSTANTIATE_TEST_SUITE_P(
    OfEachLibrary, ClassifyText,
    ::testing::Values("[enforce fail at alloc_cpu.cpp:119] err == 0. DefaultCPUAllocator: can't "
                      "allocate memory: you "
                      "tried to allocate 400 bytes. Error code 12",
                      "DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes.",
                      "CUDA out of memory. Tried to allocate 20.00 MiB",
                      "CUDA error: out of memory", "CUDA driver error: out of memory",
                      "CUDA_ERROR_OUT_OF_MEMORY: out of memory", "cudaErrorMemoryAllocation",
                      "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate",
                      "cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
                      "cusolver error: CUSOLVER_STATUS_ALLOC_FAILED",
                      "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
                      "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED",
                      "cuFFT error: CUFFT_ALLOC_FAILED",
                      "ncclUnhandledCudaError: Cuda failure 'out of memory'",
                      "Last error: Cuda failure 2 'out of memory'"));

TEST(Classify, IsNotCertainOfCudnnsNotSupported) {
  const auto info = classified(
      std::runtime_error("cuDNN error: CUDNN_STATUS_NOT_SUPPORTED. This error may appear"));
  ASSERT_TRUE(info);
  EXPECT_FALSE(info->certain);
}

TEST(Classify, LeavesOtherErrorsAlone) {
  EXPECT_FALSE(classify(nullptr));
  EXPECT_FALSE(classified(std::runtime_error("disk out of memory cards")));
  EXPECT_FALSE(classified(c10::Error("expected scalar type Float but found Double")));
  EXPECT_FALSE(classified(std::runtime_error("CUDA error: device-side assert triggered")));
  EXPECT_FALSE(classified(42));
}

TEST(Classify, WalksNestedCauses) {
  try {
    try {
      try {
        throw OutOfMemory(c10::kCPU, 11, 0);
      } catch (...) {
        std::throw_with_nested(std::runtime_error("loading the batch"));
      }
    } catch (...) {
      std::throw_with_nested(std::logic_error("training"));
    }
  } catch (...) {
    const auto info = classify(std::current_exception());
    ASSERT_TRUE(info);
    EXPECT_EQ(info->asked_bytes, 11);
  }
}

TEST(Classify, ReadsTheAmountWithAndWithoutUnit) {
  const auto asked = [](const char* text) {
    return classified(c10::OutOfMemoryError(text))->asked_bytes;
  };
  EXPECT_EQ(asked("you tried to allocate 400 bytes."), 400);
  EXPECT_EQ(asked("Tried to allocate 512.00 KiB."), 512 << 10);
  EXPECT_EQ(asked("Tried to allocate"), std::nullopt);
  EXPECT_EQ(asked("Tried to allocate much"), std::nullopt);
}

/// A forward with a branch, so that the ready queue holds more than one task.
at::Tensor branching_loss(const at::Tensor& weight) {
  auto x = at::ones({2, 4, 16, 16});
  for (int i = 0; i < 4; ++i)
    x = at::relu(at::conv2d(x, weight, {}, 1, 1)).add(at::conv2d(x, weight, {}, 1, 1));
  return x.sum();
}

// Every point of failure inside a backward: what it left is gone after the flush.
TEST(FlushReadyQueue, FreesWhatAFailedBackwardLeft) {
  const auto weight = at::ones({4, 4, 3, 3}).set_requires_grad(true);
  branching_loss(weight).backward();
  weight.mutable_grad().reset();
  const auto base = host_allocator::counters().live_bytes;
  int left_something = 0;
  bool failed = true;
  for (uint64_t k = 1; failed; ++k) {
    failed = false;
    {
      const auto loss = branching_loss(weight);
      host_allocator::fail_at(k);
      try {
        loss.backward();
      } catch (const OutOfMemory&) {
        failed = true;
      }
      host_allocator::fail_at(0);
    }
    weight.mutable_grad().reset();
    left_something += host_allocator::counters().live_bytes > base;
    flush_ready_queue();
    ASSERT_EQ(host_allocator::counters().live_bytes, base) << "failure at allocation " << k;
  }
  EXPECT_GT(left_something, 0) << "nothing was left to flush: the test shows nothing";
}

TEST(FlushReadyQueue, WorksWithoutMemory) {
  const uint64_t births = host_allocator::counters().births;
  host_allocator::fail_all(true);
  EXPECT_NO_THROW(flush_ready_queue());
  host_allocator::fail_all(false);
  EXPECT_EQ(host_allocator::counters().births, births);
}

TEST(FlushReadyQueue, WorksWithoutGradMode) {
  const at::NoGradGuard no_grad;
  EXPECT_NO_THROW(flush_ready_queue());
}

}  // namespace
}  // namespace tare::memory
