// That the measure which the tests of hostile files use can fail.
#include <cerrno>
#include <csignal>
#include <ctime>

#include "support/hostile.h"

namespace tare::testing {
namespace {

TEST(Refusal, NamesTypeAndText) {
  EXPECT_EQ(refusal_of([] {}).outcome, "accepted");
  EXPECT_THAT(refusal_of([] { throw FormatError("op", "file", "part", "is wrong"); }).outcome,
              ::testing::StartsWith("FormatError: [op] file: part: is wrong"));
  EXPECT_THAT(refusal_of([] { throw IoError("op", "file", ENOENT); }).outcome,
              ::testing::StartsWith("IoError: "));
  EXPECT_THAT(refusal_of([] { throw std::runtime_error("x"); }).outcome, "another error: x");
}

TEST(Refusal, SeesACrash) {
  EXPECT_EQ(refusal_of([] { ::raise(SIGKILL); }).outcome, "signal " + std::to_string(SIGKILL));
}

TEST(Refusal, SeesMemoryThatIsAskedForAndNotUsed) {
  if (kSanitized) GTEST_SKIP() << "sanitizers take address space of their own";
  const auto ask = [](size_t bytes) {
    char* volatile taken = new char[bytes];
    delete[] taken;
  };
  EXPECT_EQ(refusal_of([&] { ask(kMaxRefusalBytes / 2); }).outcome, "accepted");
  EXPECT_EQ(refusal_of([&] { ask(kMaxRefusalBytes * 2); }).outcome,
            "another error: std::bad_alloc");
}

TEST(Refusal, CountsProcessorTime) {
  const Refusal busy = refusal_of([] {
    const std::clock_t end = std::clock() + CLOCKS_PER_SEC / 20;
    while (std::clock() < end) {
    }
  });
  EXPECT_GE(busy.cpu_s, 0.04);
}

}  // namespace
}  // namespace tare::testing
