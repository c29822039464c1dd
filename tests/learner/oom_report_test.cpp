// Tests what the Learner's watch adds to the report of a refused allocation.
#include <gtest/gtest.h>

#include "learner/fixture.h"
#include "tare/memory/oom.h"
#include "tare/memory/oom_report.h"

namespace tare::testing {
namespace {

/// The report of a fit for which `bytes` above the weights and data are too few.
std::shared_ptr<const memory::OutOfMemoryReport> report_with(int64_t bytes, int64_t workers) {
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  options.workers = workers;
  options.micro_batch = options.batch;
  Learner learner(make_net(), split_points(), options);
  auto& backend = memory::backend(c10::kCPU);
  backend.set_budget(tracked() + bytes);
  EXPECT_THROW(learner.fit(1), OutOfMemory);
  backend.set_budget({});
  auto report = memory::last_out_of_memory();
  learner.fit(1);
  EXPECT_EQ(memory::last_out_of_memory(), nullptr) << "of an earlier fit";
  return report;
}

TEST(OutOfMemoryReport, NamesTheLearnersTensors) {
  const auto report = report_with(6000, 0);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->phase, "forward");
  EXPECT_EQ(report->workload.batch, 16);
  ASSERT_TRUE(report->fitting_batch);
  EXPECT_LT(*report->fitting_batch, 16);
  EXPECT_GT(report->snapshot.categories[Category::parameters], 0);
  EXPECT_GT(report->snapshot.categories[Category::batch], 0);
  EXPECT_GT(report->snapshot.categories[Category::optimizer], 0);
}

TEST(OutOfMemoryReport, OfAValidationInPartsIsOfTheParts) {
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  options.workers = 0;
  options.micro_batch = options.batch / 2;
  Learner learner(make_net(), split_points(), options);
  (void)learner.validate();
  auto& backend = memory::backend(c10::kCPU);
  std::shared_ptr<const memory::OutOfMemoryReport> report;
  for (int64_t bytes = 256; bytes < 8192 && !(report && report->workload.in_parts); bytes += 128) {
    backend.set_budget(tracked() + bytes);
    EXPECT_THROW((void)learner.validate(), OutOfMemory);
    backend.set_budget({});
    report = memory::last_out_of_memory();
  }
  ASSERT_TRUE(report);
  EXPECT_EQ(report->workload.batch, options.batch / 2);
  EXPECT_EQ(report->advice().find("batch 1"), std::string::npos) << report->advice();
  EXPECT_NE(report->advice().find("micro-batches of "), std::string::npos) << report->advice();
}

TEST(OutOfMemoryReport, IsMadeForTheOptimizersStateToo) {
  const auto report = report_with(100, 0);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->phase, "step");
  EXPECT_FALSE(report->fitting_batch);
}

TEST(OutOfMemoryReport, EveryBudgetIsReportedWithLoaderThreadsToo) {
  for (int64_t bytes = 4000; bytes < 12'000; bytes += 500) ASSERT_TRUE(report_with(bytes, 2));
}

}  // namespace
}  // namespace tare::testing
