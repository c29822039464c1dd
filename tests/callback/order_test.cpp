// The order in which the callbacks of a fit are called.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tare/callback/callback.h"

namespace tare::testing {
namespace {

using ::testing::ElementsAre;

class Named final : public Callback {
 public:
  Named(std::string name, CallbackFacts facts) : name_(std::move(name)), facts_(std::move(facts)) {}
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] CallbackFacts facts() const override { return facts_; }

 private:
  std::string name_;
  CallbackFacts facts_;
};

/// Returns the order of callbacks by their names: "l1" logs, "s1" saves epochs, "c1" saves epochs
/// and adds a column, "p1" is any other.
std::vector<std::string> order_of(const std::vector<std::string>& names) {
  std::vector<CallbackPtr> callbacks;
  for (const std::string& name : names) {
    const char kind = name.front();
    CallbackFacts facts{.logs = kind == 'l', .saves_epochs = kind == 's' || kind == 'c'};
    if (kind == 'c') facts.columns = {"x"};
    callbacks.push_back(std::make_shared<Named>(name, facts));
  }
  move_logs_back(callbacks);
  std::vector<std::string> order;
  for (const CallbackPtr& callback : callbacks) order.push_back(callback->name());
  return order;
}

TEST(MoveLogsBack, PutsThemBehindTheLastThatMayAddAColumn) {
  EXPECT_THAT(order_of({"l1", "p1", "l2", "p2"}), ElementsAre("p1", "p2", "l1", "l2"));
  EXPECT_THAT(order_of({"l1", "p1", "s1", "l2"}), ElementsAre("p1", "l1", "s1", "l2"));
  EXPECT_THAT(order_of({"s1", "l1", "p1"}), ElementsAre("s1", "p1", "l1"));
}

TEST(MoveLogsBack, KeepsWhatSavesBehindTheLogsThatItStandsBehind) {
  EXPECT_THAT(order_of({"l1", "s1", "p1"}), ElementsAre("p1", "l1", "s1"));
  EXPECT_THAT(order_of({"s1", "l1", "s2", "p1", "l2", "s3"}),
              ElementsAre("s1", "p1", "l1", "s2", "l2", "s3"));
  EXPECT_THAT(order_of({"l1", "s1", "c1", "s2"}), ElementsAre("c1", "l1", "s1", "s2"));
}

TEST(MoveLogsBack, LeavesAListWithoutNeedAsItIs) {
  EXPECT_THAT(order_of({"s1", "l1", "s2", "l2"}), ElementsAre("s1", "l1", "s2", "l2"));
  EXPECT_THAT(order_of({"p1", "s1", "p2"}), ElementsAre("p1", "s1", "p2"));
  EXPECT_THAT(order_of({}), ElementsAre());
}

}  // namespace
}  // namespace tare::testing
