// A limit for all memory of the process.
#include "tare/memory/process_limit.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstring>
#include <memory>
#include <new>
#include <sstream>
#include <vector>

#include "support/sanitized.h"
#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/memory/backend.h"
#include "tare/memory/device_table.h"
#include "tare/memory/machine.h"
#include "tare/memory/oom.h"
#include "tare/memory/process_peak.h"

namespace tare::memory {
namespace {

using ::testing::HasSubstr;
using testing::kSanitized;

class ProcessLimit : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "the sanitizer keeps freed blocks resident";
    malloc_trim(0);
  }
  void TearDown() override { set_process_memory_limit({}); }

  static void leave(int64_t available_bytes, const ProcessLimitOptions& options = {}) {
    set_process_memory_limit(resident_bytes() + available_bytes, options);
  }
};

TEST_F(ProcessLimit, CountsWhatIsNoTensor) {
  leave(96_MiB);
  EXPECT_NO_THROW(at::ones({64_MiB}, at::kByte));
  auto list = std::make_unique<std::vector<char>>(64_MiB, 'x');
  try {
    at::empty({64_MiB}, at::kByte);
    FAIL() << "the list was not counted";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.asked_bytes(), 64_MiB);
    EXPECT_THAT(error.what_without_backtrace(), HasSubstr("the process holds "));
    EXPECT_THAT(error.what_without_backtrace(), HasSubstr(" of its limit of "));
  }
  list.reset();
  EXPECT_NO_THROW(at::empty({64_MiB}, at::kByte)) << "what is free goes back to the system first";
  set_process_memory_limit({});
  EXPECT_FALSE(process_memory_limit());
  EXPECT_NO_THROW(at::empty({256_MiB}, at::kByte));
}

TEST_F(ProcessLimit, CountsTensorsThatWereNotWrittenTo) {
  leave(96_MiB);
  const auto untouched = at::empty({64_MiB}, at::kByte);
  EXPECT_THROW(at::empty({64_MiB}, at::kByte), OutOfMemory);
}

TEST_F(ProcessLimit, LimitsWhatTheHostHasAvailable) {
  leave(10_MiB);
  const auto info = backend(c10::kCPU).memory_info();
  EXPECT_LE(info.available_bytes, 10_MiB);
  EXPECT_EQ(info.total_bytes, process_memory_limit());
}

TEST_F(ProcessLimit, CanRefuseMemoryToContainers) {
  rlimit before{}, after{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  leave(96_MiB, {.address_space = true});
  EXPECT_THROW(std::vector<char>(1_GiB, 'x'), std::bad_alloc);
  EXPECT_NO_THROW(std::vector<char>(16_MiB, 'x'));
  set_process_memory_limit({});
  ASSERT_EQ(getrlimit(RLIMIT_AS, &after), 0);
  EXPECT_EQ(after.rlim_cur, before.rlim_cur);
}

TEST_F(ProcessLimit, IsAtLeastAByte) {
  EXPECT_THROW(set_process_memory_limit(0), ConfigError);
  EXPECT_FALSE(process_memory_limit());
}

// Pages of the system, which no heap keeps or has kept.
class Pages {
 public:
  explicit Pages(size_t bytes)
      : bytes_(bytes),
        data_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (data_ == MAP_FAILED) throw std::bad_alloc();
    std::memset(data_, 'x', bytes);
  }
  ~Pages() { ::munmap(data_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

 private:
  size_t bytes_;
  void* data_;
};

TEST(ProcessPeak, IsOfEachScopeThatIsOpen) {
  constexpr int64_t kOff = 4_MiB;  // pages are counted in groups
  const ProcessPeakScope outer;
  { const Pages passing(64_MiB); }
  const ProcessPeakScope inner;
  const Pages kept(16_MiB);
  EXPECT_NEAR(static_cast<double>(outer.peak_above_start_bytes()), 64_MiB, kOff);
  EXPECT_NEAR(static_cast<double>(inner.peak_above_start_bytes()), 16_MiB, kOff);
}

TEST(PrintDevices, HasALineForEach) {
  const auto held = at::empty({1_MiB}, at::kByte);
  std::ostringstream out;
  print_devices(out);
  EXPECT_THAT(out.str(), HasSubstr("device  name"));
  EXPECT_THAT(out.str(), HasSubstr("\ncpu     "));
  EXPECT_THAT(out.str(), HasSubstr(backend(c10::kCPU).name()));
  const auto lines = std::ranges::count(out.str(), '\n');
  EXPECT_EQ(static_cast<size_t>(lines), 1 + devices().size());
}

}  // namespace
}  // namespace tare::memory
