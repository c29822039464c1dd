// The CUDA plug-in as a file: what it would load and what it offers. Needs no GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace tare {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

std::string readelf(const std::string& option) {
  std::string text;
  FILE* pipe = popen(("readelf -W " + option + " " + TARE_CUDA_PLUGIN).c_str(), "r");
  if (!pipe) return text;
  char part[512];
  while (std::fgets(part, sizeof(part), pipe)) text += part;
  pclose(pipe);
  return text;
}

// A linker that drops unused libraries would leave a plug-in that loads, and no CUDA.
TEST(CudaPlugin, LoadsWhatRegistersCuda) {
  const auto needed = readelf("-d");
  EXPECT_THAT(needed, HasSubstr("Shared library: [libtorch_cuda.so]"));
  EXPECT_THAT(needed, HasSubstr("Shared library: [libcudart.so.13]"));
}

TEST(CudaPlugin, OffersItsEntry) {
  EXPECT_THAT(readelf("--dyn-syms"), HasSubstr(" tare_open_plugin"));
}

// The layout of this class depends on the version of nccl.h. LibTorch looks for its functions in
// the plug-in first.
TEST(CudaPlugin, KeepsItsCopyOfTheOptionsOfNcclToItself) {
  EXPECT_THAT(readelf("--dyn-syms"), Not(ContainsRegex(" WEAK [^\n]*ProcessGroupNCCL7Options")));
}

// A second copy of the host allocator in the plug-in would count for itself.
TEST(CudaPlugin, BringsNoHostAllocator) {
  EXPECT_THAT(readelf("-s"), Not(HasSubstr("host_allocator")));
}

}  // namespace
}  // namespace tare
