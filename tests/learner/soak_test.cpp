// A process that trains and gives back, over and over, does not grow.
#include <gtest/gtest.h>
#include <malloc.h>

#include <filesystem>
#include <fstream>

#include "learner/fixture.h"
#include "support/deep.h"
#include "support/sanitized.h"

namespace tare::testing {
namespace {

int64_t resident_bytes() {
  int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * 4096;
}

int64_t entries(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

// Least squares: bytes a cycle.
double slope(const std::vector<int64_t>& values) {
  const auto n = static_cast<double>(values.size());
  double sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const auto x = static_cast<double>(i), y = static_cast<double>(values[i]);
    sx += x;
    sy += y;
    sxx += x * x;
    sxy += x * y;
  }
  return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

void cycle(const TempDir& folder) {
  LearnerOptions options = quiet(folder);
  options.batch = 8;
  Learner learner(make_net(), {.train = points(24, 1)}, std::move(options));
  learner.fit(1);  // three steps
  learner.purge();
  learner.destroy();
}

TEST(Soak, CyclesOfFitPurgeDestroyDoNotGrow) {
  constexpr double kGrowth = 1024;  // bytes a cycle
  const TempDir folder;
  const int cycles = reduced(500, 10'000);
  for (int i = 0; i < cycles / 4; ++i) cycle(folder);  // caches of the library and of malloc fill
  const int64_t bytes = tracked(), count = blocks();
  const int64_t threads = entries("/proc/self/task"), files = entries("/proc/self/fd");
  std::vector<int64_t> resident;
  for (int i = 0; i < cycles; ++i) {
    cycle(folder);
    ASSERT_EQ(tracked(), bytes) << "cycle " << i;
    ASSERT_EQ(blocks(), count) << "cycle " << i;
    ::malloc_trim(0);
    resident.push_back(resident_bytes());
  }
  EXPECT_EQ(entries("/proc/self/task"), threads);
  EXPECT_EQ(entries("/proc/self/fd"), files);
  const double growth = slope(resident);
  std::printf("%d cycles: resident %.1f MiB, slope %.1f bytes a cycle\n", cycles,
              static_cast<double>(resident.back()) / (1 << 20), growth);
  if (kSanitized) GTEST_SKIP() << "the sanitizer keeps freed blocks resident";
  EXPECT_LT(growth, kGrowth);
}

}  // namespace
}  // namespace tare::testing
