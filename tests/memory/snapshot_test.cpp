// Snapshots by category and holder, and saved tensors.
#include "tare/memory/snapshot.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "memory/bytes_of.h"
#include "tare/base/error.h"
#include "tare/memory/backend.h"
#include "tare/memory/call_stack.h"
#include "tare/memory/oom.h"
#include "tare/memory/phase.h"
#include "tare/memory/saved_tensors.h"

namespace tare::memory {
namespace {

using tare::testing::bytes_of;
using ::testing::HasSubstr;

/// Subtracts the snapshot taken at its construction from a new one.
class Difference {
 public:
  [[nodiscard]] Snapshot now() const {
    Snapshot snapshot = checked();
    for (size_t i = 0; i < kCategories; ++i)
      snapshot.categories.bytes[i] -= before_.categories.bytes[i];
    snapshot.unexplained_bytes -= before_.unexplained_bytes;
    return snapshot;
  }
  [[nodiscard]] int64_t operator[](Category category) const { return now().categories[category]; }
  [[nodiscard]] int64_t unexplained() const { return now().unexplained_bytes; }

 private:
  static Snapshot checked() {
    const Snapshot snapshot = take_snapshot(c10::kCPU);
    int64_t sum = 0;
    for (const auto& holder : snapshot.holders) sum += holder.bytes;
    EXPECT_EQ(sum, snapshot.allocated_bytes);
    EXPECT_EQ(snapshot.categories.total() + snapshot.unexplained_bytes, snapshot.allocated_bytes);
    EXPECT_EQ(snapshot.allocated_bytes, backend(c10::kCPU).usage().allocated_bytes);
    return snapshot;
  }
  Snapshot before_ = checked();
};

struct OwnerOfTwo final : Accountable {
  [[nodiscard]] std::string account_name() const override { return "owner"; }
  [[nodiscard]] Ledger ledger() const override {
    Ledger ledger;
    ledger.add(Category::parameters, "weight", weight);
    ledger.add(Category::optimizer, "weight", momentum);
    return ledger;
  }
  PurgeReport purge_account(const PurgeOptions&) override { return {}; }
  at::Tensor weight = bytes_of(1000), momentum = bytes_of(2000);
};

TEST(Snapshot, TakesTheCategoriesOfLedgers) {
  const Difference more;
  const OwnerOfTwo owner;
  EXPECT_EQ(more[Category::parameters], 1000);
  EXPECT_EQ(more[Category::optimizer], 2000);
  EXPECT_EQ(more.unexplained(), 0);
}

TEST(Snapshot, LeavesUnexplainedWhatNobodyAnswersFor) {
  const Difference more;
  const auto tensor = bytes_of(300);
  EXPECT_EQ(more.unexplained(), 300);
  const Phase phase(PhaseKind::forward);
  EXPECT_EQ(more.unexplained(), 300) << "born before the phase";
}

TEST(Snapshot, DistinguishesTheRolesOfAStepsBlocks) {
  const Difference more;
  at::Tensor batch, output, product, state, loose;
  {
    const Step step;
    EXPECT_TRUE(step_under_way());
    loose = bytes_of(1);
    {
      const Phase phase(PhaseKind::data);
      batch = bytes_of(20);
    }
    {
      const Phase phase(PhaseKind::forward);
      output = bytes_of(300);
    }
    {
      const Phase phase(PhaseKind::backward);
      product = bytes_of(4000);
    }
    const Phase phase(PhaseKind::step);
    state = bytes_of(50'000);
    EXPECT_EQ(more[Category::batch], 20);
    EXPECT_EQ(more[Category::activations], 300);
    EXPECT_EQ(more[Category::workspace], 54'000);
    EXPECT_EQ(more.unexplained(), 1) << "born in no phase";
  }
  EXPECT_FALSE(step_under_way());
  EXPECT_EQ(more[Category::activations], 0);
  EXPECT_EQ(more.unexplained(), 54'301) << "kept after the step";
  const Step next;
  EXPECT_EQ(more.unexplained(), 54'321) << "the batch too is now of an earlier step";
}

TEST(Snapshot, CountsThePhaseInForceAsWorkspaceOrOther) {
  const Difference more;
  at::Tensor validated, distilled;
  {
    const Phase phase(PhaseKind::validate);
    validated = bytes_of(100);
    EXPECT_EQ(more[Category::workspace], 100);
  }
  {
    const Phase phase("distil");
    distilled = bytes_of(2000);
    EXPECT_EQ(more[Category::other], 2000);
  }
  EXPECT_EQ(more[Category::workspace], 0);
  EXPECT_EQ(more[Category::other], 0);
  EXPECT_EQ(more.unexplained(), 2100);
}

TEST(Snapshot, ListsHoldersLargestFirst) {
  const CallSites gather;
  const OwnerOfTwo owner;
  std::vector<at::Tensor> kept;
  for (int i = 0; i < 2; ++i) kept.push_back(at::empty({70'000}, at::kByte));
  const int line = __LINE__ - 1;
  const auto snapshot = take_snapshot(c10::kCPU);
  const auto& first = snapshot.holders.at(0);
  EXPECT_EQ(first.category, std::nullopt);
  EXPECT_EQ(first.bytes, 140'000);
  EXPECT_EQ(first.count, 2);
  EXPECT_EQ(first.phase, "none");
  EXPECT_EQ(first.site.line, line);
  EXPECT_THAT(snapshot.str(1), HasSubstr("136.7 KiB in 2 blocks: unexplained, born in phase none "
                                         "at "));
  EXPECT_THAT(snapshot.str(), HasSubstr("1000 B in 1 block: parameters, weight\n"));
  EXPECT_THAT(snapshot.summary(), HasSubstr("unexplained "));
}

TEST(Snapshot, TakesAGivenLedgerOnAnyThread) {
  const OwnerOfTwo owner;
  std::thread([&] {
    const auto snapshot = take_snapshot(c10::kCPU, owner.ledger());
    EXPECT_EQ(snapshot.categories[Category::parameters], 1000);
  }).join();
  EXPECT_EQ(take_snapshot(c10::kCPU, Ledger()).categories[Category::parameters], 0);
}

/// A forward whose product autograd saves for the square, and whose sum it does not.
struct Forward {
  at::Tensor weight = at::ones({100}).set_requires_grad(true);
  at::Tensor product, loss;
  void run() {
    const Phase phase(PhaseKind::forward);
    product = weight.mul(3);
    loss = product.square().sum();
  }
};

TEST(SavedTensors, DistinguishActivationsFromWorkspace) {
  Forward forward;
  const Difference more;
  const Step step;
  {
    const SavedTensors noted;
    EXPECT_TRUE(SavedTensors::in_scope());
    forward.run();
    EXPECT_TRUE(SavedTensors::contains(forward.product.const_data_ptr()));
    EXPECT_FALSE(SavedTensors::contains(forward.loss.const_data_ptr()));
    EXPECT_EQ(more[Category::activations], 400);
    EXPECT_EQ(more[Category::workspace], 4);
  }
  EXPECT_FALSE(SavedTensors::in_scope());
  EXPECT_TRUE(SavedTensors::contains(forward.product.const_data_ptr())) << "until the graph ends";
  forward.loss.backward();
  EXPECT_FALSE(SavedTensors::contains(forward.product.const_data_ptr()));
  EXPECT_EQ(forward.weight.grad()[7].item<float>(), 18.0F);
}

TEST(SavedTensors, OutsideTheirScopeNothingIsNoted) {
  Forward forward;
  { const SavedTensors noted; }
  forward.run();
  EXPECT_FALSE(SavedTensors::contains(forward.product.const_data_ptr()));
  forward.loss.backward();
  EXPECT_EQ(forward.weight.grad()[0].item<float>(), 18.0F);
}

TEST(SavedTensors, FreeWhatAnUnusedGraphSaved) {
  const void* data = nullptr;
  {
    const SavedTensors noted;
    Forward forward;
    forward.run();
    data = forward.product.const_data_ptr();
    EXPECT_TRUE(SavedTensors::contains(data));
  }
  EXPECT_FALSE(SavedTensors::contains(data));
}

TEST(SavedTensors, AChangeInPlaceIsStillAnError) {
  const SavedTensors noted;
  Forward forward;
  forward.run();
  forward.product.detach().add_(1);
  EXPECT_THROW(forward.loss.backward(), StateError);
  flush_ready_queue();
}

}  // namespace
}  // namespace tare::memory
