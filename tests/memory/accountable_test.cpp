// Ledgers, categories and the objects that answer for tensors.
#include "tare/memory/accountable.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

namespace tare {
namespace {

using ::testing::ElementsAre;

TEST(Ledger, CountsEachStorageOnceAndWhole) {
  const auto base = at::ones({10});
  Ledger ledger;
  ledger.add(Category::parameters, "part", base.slice(0, 2, 4));
  ledger.add(Category::gradients, "all", base);
  ASSERT_EQ(ledger.entries().size(), 1U);
  EXPECT_EQ(ledger.entries()[0].bytes, 40);
  EXPECT_EQ(ledger.entries()[0].name, "part");
  EXPECT_TRUE(ledger.contains(base.data_ptr()));
  EXPECT_EQ(ledger.bytes()[Category::parameters], 40);
  EXPECT_EQ(ledger.bytes()[Category::gradients], 0);
}

TEST(Ledger, GivesItsEntriesToALoopOverATemporaryOne) {
  const auto made = [] {
    Ledger ledger;
    ledger.add(Category::batch, "a name too long to be held in the string itself", at::ones({3}));
    return ledger;
  };
  int64_t count = 0;
  for (const LedgerEntry& entry : made().entries())
    count += entry.name.ends_with("string itself") ? entry.bytes : 0;
  EXPECT_EQ(count, 12);
}

TEST(Ledger, IgnoresUndefinedAndEmptyTensors) {
  Ledger ledger;
  ledger.add(Category::batch, "undefined", at::Tensor());
  ledger.add(Category::batch, "empty", at::empty({0}));
  EXPECT_TRUE(ledger.entries().empty());
}

TEST(Ledger, MergesWithoutDoubles) {
  const auto a = at::ones({1}), b = at::ones({2});
  Ledger first, second;
  first.add(Category::parameters, "a", a);
  second.add(Category::batch, "a", a);
  second.add(Category::batch, "b", b);
  first.add(second);
  EXPECT_EQ(first.bytes()[Category::parameters], 4);
  EXPECT_EQ(first.bytes()[Category::batch], 8);
  EXPECT_EQ(first.bytes(c10::kCPU).total(), 12);
  EXPECT_EQ(first.bytes(c10::Device(c10::kCUDA, 0)).total(), 0);
}

TEST(CategoryBytes, LeavesMappedWeightsOutOfTheTotal) {
  CategoryBytes bytes;
  EXPECT_EQ(bytes.str(), "nothing");
  bytes[Category::gradients] = 1 << 20;
  bytes[Category::mapped] = 512;
  EXPECT_EQ(bytes.total(), 1 << 20);
  EXPECT_EQ(bytes.str(), "gradients 1 MiB, mapped 512 B");
}

TEST(Category, HasANameForEach) {
  const char* names[] = {"parameters", "buffers",   "gradients", "optimizer", "activations",
                         "batch",      "workspace", "other",     "mapped"};
  for (size_t i = 0; i < kCategories; ++i)
    EXPECT_STREQ(to_string(static_cast<Category>(i)), names[i]);
}

TEST(PurgeReport, SaysWhatWasFreed) {
  PurgeReport report;
  report.freed[Category::optimizer] = 2 << 20;
  EXPECT_EQ(report.total(), 2 << 20);
  EXPECT_EQ(report.str(), "reclaimed 2 MiB: optimizer 2 MiB");
}

class Holder : public Accountable {
 public:
  [[nodiscard]] std::string account_name() const override { return "holder"; }
  [[nodiscard]] Ledger ledger() const override { return {}; }
  PurgeReport purge_account(const PurgeOptions&) override { return {}; }
};

TEST(Accountable, ListsTheLivingInOrderOfConstruction) {
  const auto before = Accountable::living().size();
  const Holder first;
  auto second = std::make_unique<Holder>();
  const Holder third;
  ASSERT_EQ(Accountable::living().size(), before + 3);
  second.reset();
  const auto living = Accountable::living();
  EXPECT_THAT(std::vector(living.begin() + static_cast<int64_t>(before), living.end()),
              ElementsAre(&first, &third));
}

}  // namespace
}  // namespace tare
