// The blocks that cuBLAS and cublasLt take on a card are workspace in every view of the memory.
#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>

#include "contract/traits.h"
#include "support/temp_dir.h"
#include "tare/base/bytes.h"
#include "tare/memory/backend.h"
#include "tare/memory/block_categories.h"
#include "tare/memory/event_log.h"
#include "tare/memory/oom_report.h"
#include "tare/memory/phase.h"
#include "tare/memory/snapshot.h"
#include "tare/memory/trace_files.h"

namespace tare::memory {
namespace {

class CudaWorkspace : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = CudaTraits::prepare(); !reason.empty()) GTEST_SKIP() << reason;
    backend_ = &backend(device_);
    static const int64_t before_any_context = backend_->traits().planner.value().workspace_bytes;
    known_early_ = before_any_context;
    backend_->warm();
    backend_->reclaim();
    before_ = take_snapshot(device_);
    const auto planner = backend_->traits().planner.value();
    bytes_ = planner.workspace_bytes + planner.linear_workspace_bytes;
    kept_ = planner.keeps_workspaces ? bytes_ : 0;
    peak_ = planner.keeps_workspaces ? bytes_ : planner.workspace_bytes;
  }
  void TearDown() override {
    if (backend_) backend_->reclaim();
  }

  /// Multiplies in phase forward, with both libraries; returns the result.
  [[nodiscard]] at::Tensor multiply() const {
    const Phase phase(PhaseKind::forward);
    const at::TensorOptions on_card(device_);
    const auto matrix = at::ones({64, 64}, on_card);
    return at::addmm(at::zeros({64}, on_card), matrix, matrix.mm(matrix));
  }
  void expect_workspace(const Snapshot& now, int64_t of_the_work = 0) const {
    EXPECT_EQ(now.library_bytes, kept_);
    EXPECT_EQ(now.categories[Category::workspace], kept_);
    EXPECT_EQ(now.categories[Category::activations], of_the_work);
    EXPECT_EQ(now.unexplained_bytes, before_.unexplained_bytes);
    const auto holder = std::ranges::find(now.holders, kLibraries, &Holder::name);
    ASSERT_EQ(holder != now.holders.end(), kept_ > 0) << now.str();
    if (kept_ == 0) return;  // each product has given its own back
    EXPECT_EQ(holder->bytes, kept_);
    EXPECT_EQ(holder->category, Category::workspace);
    EXPECT_NE(holder->str().find("workspace, libraries of the device"), std::string::npos);
  }

  const c10::Device device_ = CudaTraits::device();
  DeviceBackend* backend_ = nullptr;
  Snapshot before_;
  int64_t known_early_ = 0;  // of cuBLAS, before the card had a context
  int64_t bytes_ = 0;        // of both libraries
  int64_t kept_ = 0;         // after the products
  int64_t peak_ = 0;         // at once
};

TEST_F(CudaWorkspace, IsKnownBeforeTheCardHasAContext) {
  EXPECT_EQ(known_early_, backend_->traits().planner.value().workspace_bytes);
}

TEST_F(CudaWorkspace, IsWorkspaceInTheStepThatTookItAndAfterIt) {
  {
    const Step step;
    const auto result = multiply();
    expect_workspace(take_snapshot(device_), static_cast<int64_t>(result.nbytes()));
  }
  expect_workspace(take_snapshot(device_));
  const Step later;
  expect_workspace(take_snapshot(device_));
  backend_->reclaim();
  EXPECT_EQ(take_snapshot(device_).library_bytes, 0);
}

TEST_F(CudaWorkspace, IsWorkspaceInAHistoryAlsoAfterItWasFreed) {
  const EventLog log({.device = device_, .capacity = 1024});
  const auto result = multiply();
  const auto sum_of_workspace = [&](EventHistory history) {
    assign_categories(history, {});
    int64_t bytes = 0;
    for (const auto& event : history.events)
      if (event.kind == EventKind::allocation && event.bytes >= 1_MiB) {
        EXPECT_STREQ(category_name(history, event.block), "workspace");
        bytes += event.bytes;
      }
    return bytes;
  };
  EXPECT_EQ(sum_of_workspace(log.history()), bytes_) << "while it is held";
  backend_->reclaim();
  EXPECT_EQ(sum_of_workspace(log.history()), bytes_) << "after it was freed";
}

TEST_F(CudaWorkspace, IsWorkspaceInTheFlameGraphOfThePeak) {
  const EventLog log({.device = device_, .capacity = 1024});
  const auto result = multiply();
  auto history = log.history();
  assign_categories(history, {});
  const tare::testing::TempDir folder;
  write_peak_stacks(history, folder / "peak.folded");
  std::ifstream file(folder / "peak.folded");
  std::map<std::string, int64_t> bytes;  // by category and phase
  for (std::string line; std::getline(file, line);)
    bytes[line.substr(0, line.rfind(' '))] = std::stoll(line.substr(line.rfind(' ') + 1));
  EXPECT_GE(bytes["workspace;phase forward"], peak_);
  EXPECT_LT(bytes["activations;phase forward"], 1_MiB) << "the result alone";
}

TEST_F(CudaWorkspace, DoesNotGrowWithTheBatchThatWouldHaveFitted) {
  const OutOfMemoryWatch watch({.batch = 4});
  static_cast<void>(multiply());
  const int64_t budget = backend_->usage().reserved_bytes + 100_MiB;
  backend_->set_budget(budget);
  const Phase phase(PhaseKind::forward);
  EXPECT_THROW(
      static_cast<void>(at::ones({200 << 20}, at::TensorOptions(device_).dtype(at::kByte))),
      c10::OutOfMemoryError);
  backend_->set_budget({});
  const auto report = last_out_of_memory();
  ASSERT_TRUE(report);
  expect_workspace(report->snapshot);
  // A quarter of 200 MiB is 50 MiB, and 100 are left beside what the library holds already.
  EXPECT_EQ(report->fitting_batch, 2);
}

}  // namespace
}  // namespace tare::memory
