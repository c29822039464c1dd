// Phases that nest, across threads.
#include "tare/memory/phase.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tare/memory/phase_observer.h"

namespace tare::memory {
namespace {

TEST(Phase, NestsAndRestores) {
  EXPECT_EQ(phase_name(current_phase()), "none");
  {
    const Phase forward(PhaseKind::forward);
    {
      const Phase step(PhaseKind::step);
      EXPECT_EQ(phase_name(current_phase()), "step");
    }
    EXPECT_EQ(phase_name(current_phase()), "forward");
  }
  EXPECT_EQ(current_phase(), 0U);
}

TEST(Phase, NamesEveryKind) {
  const char* names[] = {"none",     "data",    "forward", "backward", "step",
                         "validate", "predict", "save",    "load",     "purge"};
  for (uint32_t i = 0; i < kPhaseKinds; ++i) {
    EXPECT_EQ(phase_name(i), names[i]);
    EXPECT_EQ(phase_id(names[i]), i);
  }
}

TEST(Phase, TakesNamesOfUsers) {
  const auto id = phase_id("distil");
  EXPECT_EQ(phase_id("distil"), id);
  EXPECT_NE(phase_id("quantise"), id);
  const Phase phase("distil");
  EXPECT_EQ(current_phase(), id);
  EXPECT_EQ(phase_name(id), "distil");
  EXPECT_EQ(phase_name(id + 1000), "none");
}

std::vector<std::string> seen;

TEST(Phase, IsSeenByAnObserver) {
  static constexpr PhaseObserver kObserver{
      [](uint32_t phase) noexcept { seen.push_back(phase_name(phase)); },
      []() noexcept { seen.emplace_back("end"); }};
  observe_phases(&kObserver);
  {
    const Phase forward(PhaseKind::forward);
    const Phase distil("distil");
    std::thread([] { const ThreadPhase data(PhaseKind::data); }).join();
  }
  observe_phases(nullptr);
  { const Phase unseen(PhaseKind::step); }
  EXPECT_THAT(seen, ::testing::ElementsAre("forward", "distil", "data", "end", "end", "end"));
}

TEST(Phase, ReachesOtherThreadsButForTheirOwn) {
  const Phase phase(PhaseKind::backward);
  std::string plain, own, after;
  std::thread([&] {
    plain = phase_name(current_phase());
    {
      const ThreadPhase data(PhaseKind::data);
      own = phase_name(current_phase());
    }
    after = phase_name(current_phase());
  }).join();
  EXPECT_EQ(plain, "backward");
  EXPECT_EQ(own, "data");
  EXPECT_EQ(after, "backward");
  EXPECT_EQ(phase_name(current_phase()), "backward");
}

}  // namespace
}  // namespace tare::memory
