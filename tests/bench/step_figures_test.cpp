// The tests compare the figures of `tare bench` with known ones: operations and bytes of operators,
// parts of steps, limits.
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/bench/bench.h"
#include "tare/recipe/read_recipe.h"

namespace tare::testing {
namespace {

using bench::OperatorClass;
using bench::OperatorFigures;
using ::testing::HasSubstr;

/// Returns the figures of the operator with this name; without calls: it was not called.
OperatorFigures of(const std::vector<OperatorFigures>& all, const std::string& name) {
  for (const OperatorFigures& one : all)
    if (one.name == name) return one;
  return {};
}

template <class Work>
std::vector<OperatorFigures> figures_of(Work&& work) {
  const at::NoGradGuard without_graph;
  bench::OperatorTimes times(false);
  times.resume();
  work();
  times.pause();
  (void)at::ones({7});  // while nothing counts
  return times.figures();
}

TEST(OperatorTimes, CountOperationsAndBytesOfAProduct) {
  const at::Tensor a = at::ones({8, 16}), b = at::ones({16, 4}), bias = at::ones({4});
  const auto figures = figures_of([&] {
    for (int i = 0; i < 3; ++i) (void)at::addmm(bias, a, b);
  });
  const OperatorFigures product = of(figures, "aten::addmm");
  EXPECT_EQ(product.calls, 3);
  EXPECT_EQ(product.kind, OperatorClass::product);
  EXPECT_EQ(product.flops.fp32, 3 * 2 * 8 * 16 * 4);
  EXPECT_EQ(product.bytes, 4 * (4 + 8 * 16 + 16 * 4 + 8 * 4));
  EXPECT_EQ(product.operands, "[4] [8,16] [16,4]");
  EXPECT_GT(product.seconds, 0);
  EXPECT_EQ(of(figures, "aten::ones").calls, 0) << "after pause()";
}

TEST(OperatorTimes, CountBytesOnceWhereAnOperatorCallsAnother) {
  const at::Tensor a = at::ones({8, 16});
  const auto figures = figures_of([&] { (void)a.t().contiguous(); });
  double moved = 0;
  for (const OperatorFigures& one : figures) moved += one.bytes * static_cast<double>(one.calls);
  EXPECT_EQ(moved, 3 * 4 * 8 * 16) << "copy_ reads one, and its result is read and written";
  EXPECT_EQ(of(figures, "aten::t").bytes, 0) << "a view";
}

TEST(OperatorTimes, CountWhatIsWrittenInPlace) {
  const at::Tensor a = at::ones({100}), b = at::ones({100}), row = at::ones({1}).expand({100});
  EXPECT_EQ(of(figures_of([&] { a.add_(b); }), "aten::add_").bytes, 4 * 300);
  EXPECT_EQ(of(figures_of([&] { a.add_(row); }), "aten::add_").bytes, 4 * 201);
  EXPECT_EQ(of(figures_of([&] { (void)at::add(a, b); }), "aten::add").bytes, 4 * 300);
}

TEST(OperatorTimes, CountForOneObjectAtATime) {
  const bench::OperatorTimes first(false);
  EXPECT_THROW(bench::OperatorTimes(false), StateError);
}

TEST(MachineLimits, AreBetweenThoseOfTheNextSizes) {
  bench::MachineLimits limits;
  EXPECT_EQ(limits.seconds_of_bytes(100), 0);
  limits.copies = {{1000, 100}, {100'000, 10}};
  EXPECT_DOUBLE_EQ(limits.seconds_of_bytes(500), 5);
  EXPECT_DOUBLE_EQ(limits.seconds_of_bytes(10'000), 10'000 / 55.0);
  EXPECT_DOUBLE_EQ(limits.seconds_of_bytes(1e6), 1e5);
  limits.products.fp32 = 1e-9;  // 1000 a second
  EXPECT_DOUBLE_EQ(*limits.seconds_of({.fp32 = 500}), 0.5);
  EXPECT_FALSE(limits.seconds_of({.bf16 = 1})) << "a rate that is unknown";
}

TEST(MachineLimits, AreMeasured) {
  at::set_num_threads(2);
  const TempDir folder;
  const bench::MachineLimits limits = bench::measure_limits(c10::kCPU, folder.path());
  at::set_num_threads(1);
  EXPECT_EQ(limits.threads, 2);
  for (const double rate :
       {limits.products.fp32, limits.products.bf16, limits.products_of_one.fp32,
        limits.read_bytes_per_s, limits.disk_write_bytes_per_s, limits.disk_read_bytes_per_s})
    EXPECT_GT(rate, 0);
  ASSERT_GE(limits.copies.size(), 4);
  for (const bench::CopyRate& one : limits.copies) EXPECT_GT(one.bytes_per_s, 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "the disk's file is gone";
  EXPECT_THROW((void)bench::measure_limits(c10::kCPU, folder / "absent"), IoError);
}

TEST(StepLimits, HavePartsThatSumUpToTheStep) {
  bench::MachineLimits machine;
  machine.products = {.fp32 = 1e-9};
  machine.copies = {{1, 1000}, {1'000'000, 1000}};
  const bench::StepFigures step{.batch = 4,
                                .steps = 10,
                                .step_s = 10,
                                .feed_s = 1,
                                .watched_steps = 2,
                                .operators = {{.name = "aten::mm",
                                               .kind = OperatorClass::product,
                                               .calls = 4,
                                               .seconds = 8,
                                               .flops = {.fp32 = 2000},
                                               .bytes = 100},
                                              {.name = "aten::relu",
                                               .kind = OperatorClass::pointwise,
                                               .calls = 2,
                                               .seconds = 4,
                                               .bytes = 1000},
                                              {.name = "aten::mm",
                                               .operands = "BFloat16[1]",
                                               .kind = OperatorClass::step,
                                               .calls = 2,
                                               .seconds = 2,
                                               .flops = {.bf16 = 1}}}};
  const bench::StepLimits limits = bench::limits_of(step, machine, 2);
  double sum = 0;
  for (const bench::StepPart& part : limits.parts) sum += part.seconds;
  EXPECT_DOUBLE_EQ(sum, 10);
  EXPECT_EQ(limits.parts.front().name, "matrix products");
  EXPECT_DOUBLE_EQ(*limits.parts.front().limit_s, 1);
  EXPECT_DOUBLE_EQ(limits.limit_s, 2) << "one second each of mm and of relu";
  ASSERT_EQ(limits.gaps.size(), 2);
  EXPECT_EQ(limits.gaps.front().figures.name, "aten::mm");
  EXPECT_DOUBLE_EQ(limits.gaps.front().seconds - *limits.gaps.front().limit_s, 3);
}

TEST(StepLimits, ScaleOperatorsThatTookLongerWhileTheyWereWatched) {
  const bench::StepFigures step{.step_s = 4,
                                .watched_steps = 1,
                                .operators = {{.name = "aten::mm", .calls = 1, .seconds = 8}}};
  const bench::StepLimits limits = bench::limits_of(step, {});
  EXPECT_DOUBLE_EQ(limits.parts.front().seconds, 4);
}

double part_of(const nlohmann::json& result, const std::string& name) {
  for (const nlohmann::json& part : result["parts"])
    if (part["name"] == name) return part["seconds"];
  return 0;
}

TEST(Bench, MeasuresModelsOfPicturesNumbersAndTokens) {
  for (const std::string model : {"mlp", "resnet9", "gpt", "unet", "tabular"}) {
    std::vector<std::string> small{"batch=4", "device=cpu"};
    if (model == "gpt")
      small.insert(small.end(), {"model.sample_shape=[8]", "model.width=8", "model.heads=2"});
    if (model == "resnet9" || model == "unet")
      small.insert(small.end(), {"model.sample_shape=[3, 32, 32]", "model.width=4"});
    const auto result =
        nlohmann::json::parse(to_json(bench::bench_model(model, small, {.steps = 2})));
    EXPECT_EQ(result["model"], model);
    EXPECT_EQ(result["step"]["batch"], 4);
    EXPECT_GT(result["step"]["limit_s"], 0) << model;
    EXPECT_GT(part_of(result, "matrix products") + part_of(result, "convolutions"), 0) << model;
    EXPECT_GT(part_of(result, "optimizer's step"), 0) << model;
    EXPECT_FALSE(result["gaps"].empty()) << model;
  }
}

TEST(Bench, RefusesAModelOfSeveralInputsWithoutData) {
  EXPECT_THROW((void)bench::bench_model("siamese", {}, {.steps = 1}), ConfigError);
}

TEST(Bench, MeasuresAPhaseOfARecipe) {
  const TempDir folder;
  const std::string text = R"(name: benched
device: cpu
batch: 16
data: {name: generated_digits, count: 100, size: 16}
model: {name: resnet9, width: 4}
callbacks: [csv_log, gradient_norm]
phases: [{freeze_to: -1}, {name: all}]
)";
  const RecipeOptions recipe =
      recipe_from_text(text, "recipe", {"folder=" + (folder / "runs").string()});
  const auto head = bench::bench_recipe(recipe, {.steps = 3}),
             all = bench::bench_recipe(recipe, {.phase = 1, .steps = 3});
  EXPECT_EQ(all.phase, "all");
  const auto convolutions = [](const bench::BenchResult& result) {
    int64_t flops = 0;
    for (const OperatorFigures& one : result.step.operators)
      if (one.kind == OperatorClass::convolution) flops += one.flops.fp32;
    return flops;
  };
  EXPECT_GT(convolutions(head), 0);
  EXPECT_GT(convolutions(all), 1.4 * static_cast<double>(convolutions(head)))
      << "gradients of the weights, beside those of the inputs that batch norms need";
  EXPECT_THAT(to_text(all, 100), HasSubstr("benched, all (resnet9, fp32), batch 16"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_THROW((void)bench::bench_recipe(recipe, {.phase = 2}), ConfigError);
  EXPECT_THROW((void)bench::bench_recipe(recipe, {.steps = 0}), ConfigError);
}

}  // namespace
}  // namespace tare::testing
