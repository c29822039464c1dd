// Which 16-bit types this processor computes in.
#include "tare/memory/native_types.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "tare/memory/backend.h"

namespace tare::memory {
namespace {

bool kernel_names(const std::string& flag) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("flags")) return (line + ' ').find(' ' + flag + ' ') != std::string::npos;
  return false;
}

TEST(NativeTypes, AreThoseThatTheProcessorHasInstructionsFor) {
  EXPECT_TRUE(processor_computes(c10::kFloat));
  EXPECT_TRUE(processor_computes(c10::kDouble));
  EXPECT_EQ(processor_computes(c10::kBFloat16),
            kernel_names("avx512_bf16") || kernel_names("amx_bf16"));
  EXPECT_EQ(processor_computes(c10::kHalf),
            kernel_names("avx512_fp16") || kernel_names("amx_fp16"));
}

TEST(NativeTypes, AreNoneThatOneDnnMayNotUse) {
  const char* const before = std::getenv("ONEDNN_MAX_CPU_ISA");
  const std::string kept = before ? before : "";
  setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1);
  EXPECT_FALSE(processor_computes(c10::kBFloat16));
  EXPECT_FALSE(processor_computes(c10::kHalf));
  EXPECT_TRUE(processor_computes(c10::kFloat));
  if (before)
    setenv("ONEDNN_MAX_CPU_ISA", kept.c_str(), 1);
  else
    unsetenv("ONEDNN_MAX_CPU_ISA");
}

TEST(NativeTypes, TheTimeOfAProductIsMeasuredOnceAndKeepsNoTensors) {
  const int64_t before = backend(c10::kCPU).usage().allocated_bytes;
  EXPECT_EQ(product_time_ratio(c10::kFloat), product_time_ratio(c10::kFloat));
  const double ratio = product_time_ratio(c10::kBFloat16);
  EXPECT_GT(ratio, 0);
  EXPECT_EQ(ratio, product_time_ratio(c10::kBFloat16));
  EXPECT_EQ(backend(c10::kCPU).usage().allocated_bytes, before);
}

}  // namespace
}  // namespace tare::memory
