// Tests what a RegionLog measures and prints.
#include "tare/experiment/region_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <sstream>
#include <vector>

#include "experiment/holder.h"
#include "support/sanitized.h"
#include "tare/base/bytes.h"

namespace tare {
namespace {

using testing::bytes_of;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

RegionLogOptions quiet_log() { return {.devices = {c10::kCPU}, .compact = true, .out = nullptr}; }

TEST(RegionLog, CountsWhatIsKeptAndWhatWasNeededOnTop) {
  RegionLog region("region", quiet_log());
  auto a = bytes_of(256);
  auto b = bytes_of(256);
  a.reset();
  const auto host = region.finish().devices.at(0);
  EXPECT_EQ(host.consumed_bytes, 256);
  EXPECT_EQ(host.peaked_bytes, 256);
}

TEST(RegionLog, CountsWhatWasTakenAndDropped) {
  RegionLog region("region", quiet_log());
  bytes_of(512);
  const auto host = region.finish().devices.at(0);
  EXPECT_EQ(host.consumed_bytes, 0);
  EXPECT_EQ(host.peaked_bytes, 512);
}

TEST(RegionLog, CountsAReleaseAsNegativeWithoutPeak) {
  auto old = bytes_of(512);
  RegionLog region("region", quiet_log());
  old.reset();
  const auto host = region.finish().devices.at(0);
  EXPECT_EQ(host.consumed_bytes, -512);
  EXPECT_EQ(host.peaked_bytes, 0);
}

TEST(RegionLog, CountsThePeakAboveTheStartOfARegionThatReleases) {
  auto old = bytes_of(512);
  RegionLog region("region", quiet_log());
  const auto more = std::make_optional(bytes_of(100));
  old.reset();
  const auto host = region.finish().devices.at(0);
  EXPECT_EQ(host.consumed_bytes, 100 - 512);
  EXPECT_EQ(host.peaked_bytes, 100);
}

TEST(RegionLog, NestsAndIndents) {
  std::ostringstream out;
  RegionLogOptions options = quiet_log();
  options.out = &out;
  {
    RegionLog outer("outer", options);
    {
      const RegionLog inner("inner", options);
      bytes_of(1_MiB);
    }
    bytes_of(10);
    EXPECT_EQ(outer.data().devices.at(0).peaked_bytes, 1_MiB);
  }
  EXPECT_THAT(out.str(), StartsWith("  inner: cpu 0 B, peaked 1 MiB; "));
  EXPECT_THAT(out.str(), HasSubstr("\nouter: cpu 0 B, peaked 1 MiB; "));
}

TEST(RegionLog, PrintsOnce) {
  std::ostringstream out;
  RegionLogOptions options = quiet_log();
  options.out = &out;
  {
    RegionLog region("region", options);
    const auto kept = bytes_of(3);
    const auto first = region.finish();
    const auto more = bytes_of(3);
    EXPECT_EQ(region.finish().devices.at(0).consumed_bytes, first.devices.at(0).consumed_bytes);
    EXPECT_EQ(region.data().devices.at(0).consumed_bytes, 3);
  }
  EXPECT_THAT(out.str(), MatchesRegex("region: cpu \\+3 B, peaked 0 B; [^\n]*\n"));
}

TEST(RegionLog, PrintsATableOnRequest) {
  std::ostringstream out;
  RegionLogOptions options = quiet_log();
  options.out = &out;
  options.compact = false;
  { const RegionLog region("region", options); }
  EXPECT_THAT(out.str(), HasSubstr("consumed"));
  EXPECT_THAT(out.str(), HasSubstr("\n  cpu "));
}

TEST(RegionLog, NamesWhatTheProcessTookBesideTensors) {
  if (testing::kSanitized) GTEST_SKIP() << "the sanitizer keeps freed blocks resident";
  malloc_trim(0);
  std::ostringstream out;
  RegionLogOptions options = quiet_log();
  options.out = &out;
  constexpr int64_t kOff = 4_MiB;  // pages are counted in groups, and the heap keeps some
  std::vector<char> kept;
  {
    RegionLog region("loader", options);
    kept.assign(64_MiB, 'x');
    const auto tensor = bytes_of(32_MiB).fill_(1);
    { const std::vector<char> passing(128_MiB, 'x'); }
    malloc_trim(0);
    const auto process = region.finish().process;
    EXPECT_NEAR(static_cast<double>(process.consumed_bytes), 96_MiB, kOff);
    EXPECT_NEAR(static_cast<double>(process.peaked_bytes), 128_MiB, kOff);
    EXPECT_NEAR(static_cast<double>(process.beside_tensors_bytes), 64_MiB, kOff);
  }
  EXPECT_THAT(out.str(), MatchesRegex("loader: cpu [^;]*; process \\+9[^;]*; [^\n]*\n"));
}

TEST(RegionLog, WatchesEveryDeviceUnlessToldOtherwise) {
  RegionLog region("region", {.devices = {}, .compact = true, .out = nullptr});
  EXPECT_EQ(region.finish().devices.size(), memory::devices().size());
}

TEST(RegionLog, ClosesItsScopeWhenAnExceptionPasses) {
  try {
    const RegionLog region("region", quiet_log());
    throw 1;
  } catch (int) {
  }
  RegionLog next("next", quiet_log());
  EXPECT_EQ(next.finish().depth, 0);
}

}  // namespace
}  // namespace tare
