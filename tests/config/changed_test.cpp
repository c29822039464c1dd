// Which fields differ from their defaults.
#include "tare/config/changed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tare {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct ChangedInner {
  double rate = 0.5;
};
void visit_fields(auto& visit, ChangedInner& o) { visit("rate", o.rate); }

struct ChangedOuter {
  int64_t width = 8;
  std::string name = "plain";
  std::vector<int64_t> hidden{1, 2};
  ChangedInner inner{};
};
void visit_fields(auto& visit, ChangedOuter& o) {
  visit("width", o.width)("name", o.name)("hidden", o.hidden)("inner", o.inner);
}

TEST(ChangedFields, AreThoseThatDifferFromTheDefaultsInTheirOrder) {
  EXPECT_THAT(config::changed_fields(ChangedOuter{}), IsEmpty());
  EXPECT_THAT(config::changed_fields(ChangedOuter{.width = 8, .name = "x", .hidden = {}}),
              ElementsAre("name", "hidden"));
  EXPECT_THAT(config::changed_fields(ChangedOuter{.inner = {.rate = 0.25}}), ElementsAre("inner"));
}

TEST(ChangedFields, AKeyThatTheDefaultsLackIsAChange) {
  const auto given = config::parse_text("{a: 1, b: 2}", "given");
  const auto defaults = config::parse_text("{a: 1}", "defaults");
  EXPECT_THAT(config::changed_keys(given, defaults), ElementsAre("b"));
}

}  // namespace
}  // namespace tare
