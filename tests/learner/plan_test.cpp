// Compares the figures of Learner::plan for the next fit with the measurements of that fit.
#include "tare/plan/plan.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "learner/zoo.h"
#include "support/outcome.h"
#include "tare/memory/backend.h"
#include "tare/memory/host_products.h"
#include "tare/memory/native_types.h"
#include "tare/metric/metric.h"
#include "tare/plan/fit_probe.h"

namespace tare::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Batches are made between the steps, so that nothing depends on the speed of a thread.
LearnerOptions without_workers(const TempDir& folder) {
  at::set_num_threads(1);
  LearnerOptions options = quiet(folder);
  options.workers = 0;
  return options;
}

Model mlp() {
  return models::make("mlp",
                      {.classes = kClasses, .sample_shape = {kFeatures}, .hidden = {32, 16}});
}

int64_t peak_of_a_fit(Learner& learner) {
  const memory::PeakScope scope(c10::kCPU);
  learner.fit(1);
  return scope.peak_above_start_bytes();
}

void expect_as_planned(Learner& learner, const char* state) {
  const MemoryPlan plan = learner.plan({.advice = false});
  ASSERT_TRUE(plan.known()) << plan.reason;
  EXPECT_EQ(plan.categories.total(), plan.peak_bytes) << state;
  EXPECT_EQ(plan.peak_bytes, peak_of_a_fit(learner)) << state << ": " << plan.str();
}

/// Returns a Learner whose products are large enough for oneDNN.
Learner of_large_products(bool gpt, LearnerOptions options) {
  torch::manual_seed(1);
  options.batch = gpt ? 16 : 256;
  const auto set = [&](int64_t count) {
    if (!gpt) return tensor_dataset(torch::rand({count, 128}), torch::randint(64, {count}));
    const auto tokens = torch::randint(64, {count, 64});
    return tensor_dataset(tokens, tokens.roll(-1, 1));
  };
  Model model =
      gpt ? models::make(
                "gpt", {.classes = 64, .sample_shape = {64}, .width = 128, .layers = 2, .heads = 2})
          : models::make("mlp", {.classes = 64, .sample_shape = {128}, .hidden = {512, 256}});
  return Learner(std::move(model),
                 {.train = set(2 * options.batch + 3), .valid = set(options.batch)}, options);
}

TEST(LearnerPlan, IsWhatTheNextFitAllocatesToTheByte) {
  const TempDir folder;
  Learner learner(mlp(), split_points(), without_workers(folder));
  expect_as_planned(learner, "new");
  expect_as_planned(learner, "with optimizer state");
  learner.freeze_to(-1);
  expect_as_planned(learner, "frozen below the head");
  learner.purge();
  expect_as_planned(learner, "purged");
}

TEST(LearnerPlan, CountsWhatIsThereBefore) {
  const TempDir folder;
  Learner learner(mlp(), split_points(), without_workers(folder));
  const MemoryPlan fresh = learner.plan({.advice = false});
  learner.fit(1);
  const MemoryPlan again = learner.plan({.advice = false});
  const int64_t state = learner.ledger().bytes(c10::kCPU)[Category::optimizer];
  EXPECT_GT(state, 0);
  EXPECT_EQ(again.start_bytes, fresh.start_bytes + state);
  EXPECT_EQ(again.peak_bytes, fresh.peak_bytes - state);
}

TEST(LearnerPlan, CountsTheStateOfTheParametersThatHaveSome) {
  const TempDir folder;
  Learner learner(mlp(), split_points(), without_workers(folder));
  const int64_t weights = learner.plan({.advice = false}).start_bytes;
  learner.freeze_to(-1);
  learner.fit(1);
  learner.unfreeze();
  const int64_t state = learner.ledger().bytes(c10::kCPU)[Category::optimizer];
  const MemoryPlan plan = learner.plan({.advice = false});
  EXPECT_GT(state, 0);
  EXPECT_EQ(plan.start_bytes, weights + state);
  EXPECT_EQ(plan.peak_bytes, peak_of_a_fit(learner));
}

TEST(LearnerPlan, ChangesNothing) {
  const TempDir folder;
  Learner learner(mlp(), split_points(), without_workers(folder));
  torch::manual_seed(5);
  const auto expected = torch::rand({4});
  const auto weights = flat(learner.model());
  const int64_t before = tracked();
  torch::manual_seed(5);
  EXPECT_TRUE(learner.plan().known());
  EXPECT_EQ(tracked(), before);
  EXPECT_TRUE(torch::equal(torch::rand({4}), expected)) << "the generator went on";
  EXPECT_TRUE(torch::equal(flat(learner.model()), weights));
}

TEST(LearnerPlan, SaysWhetherItFitsAnotherDevice) {
  const TempDir folder;
  Learner learner(mlp(), split_points(), without_workers(folder));
  const MemoryPlan small = learner.plan({.device = "host:1KiB"});
  EXPECT_FALSE(small.fits);
  EXPECT_EQ(small.largest_batch, 0);
  EXPECT_THAT(small.str(), StartsWith("peak "));
  EXPECT_THAT(small.str(), HasSubstr("; does not fit host:1KiB, which has 1 KiB"));
  const MemoryPlan card = learner.plan({.device = "cuda:24GiB", .batch = 30});
  EXPECT_TRUE(card.fits);
  EXPECT_EQ(card.batch, 30);
  EXPECT_EQ(card.largest_batch, 90) << "the training split";
  EXPECT_THAT(card.str(), HasSubstr("; fits cuda:24GiB, which has "));
}

TEST(LearnerPlan, OfEveryOptimizerIsKnownForTheHostAndForACard) {
  const TempDir folder;
  for (const auto& kind : optimizer_kinds()) {
    SCOPED_TRACE(kind);
    LearnerOptions options = without_workers(folder);
    options.optimizer = {.kind = kind};
    Learner learner(mlp(), split_points(), options);
    const MemoryPlan host = learner.plan({.device = "host:8GiB", .advice = false});
    const MemoryPlan card = learner.plan({.device = "cuda:8GiB", .advice = false});
    ASSERT_TRUE(host.known()) << host.reason;
    ASSERT_TRUE(card.known()) << card.reason;
    EXPECT_GE(card.categories[Category::optimizer], host.categories[Category::optimizer]);
    EXPECT_GT(card.peak_bytes, host.peak_bytes) << "blocks of a card are of 512 bytes";
  }
}

TEST(LearnerPlan, AdvisesOptimizersWithLessStateAsTheyPlan) {
  const TempDir folder;
  const auto plan_with = [&](const OptimizerOptions& optimizer) {
    LearnerOptions options = without_workers(folder);
    options.optimizer = optimizer;
    return Learner(mlp(), split_points(), options).plan();
  };
  const MemoryPlan adamw = plan_with({.kind = "adamw"});
  const MemoryPlan sgd = plan_with({.kind = "sgd", .momentum = 0});
  const auto by_sgd = std::ranges::find(adamw.savings, "optimizer.kind=sgd optimizer.momentum=0",
                                        &PlanSaving::change);
  ASSERT_NE(by_sgd, adamw.savings.end());
  EXPECT_EQ(by_sgd->peak_bytes, sgd.peak_bytes);
  for (const auto& saving : sgd.savings) EXPECT_THAT(saving.change, Not(HasSubstr("optimizer")));
}

TEST(LearnerPlan, AdvisesBfloat16OnlyWhereItIsComputedInInstructions) {
  const TempDir folder;
  const auto advised = [&](const char* device) {
    const auto plan =
        Learner(mlp(), split_points(), without_workers(folder)).plan({.device = device});
    return std::ranges::find(plan.savings, "precision=bf16", &PlanSaving::change) !=
           plan.savings.end();
  };
  EXPECT_EQ(advised("host"), memory::processor_computes(c10::kBFloat16));
  EXPECT_EQ(advised("host:1GiB"), memory::processor_computes(c10::kBFloat16));
  EXPECT_TRUE(advised("cuda:A100-40GB"));
  EXPECT_TRUE(advised("cuda:24GiB"));
  EXPECT_FALSE(advised("cuda:V100-16GB"));
  EXPECT_FALSE(advised("cuda:T4"));
}

TEST(LearnerPlan, ProbesAllSamplesWhereFewDoNotPredictThem) {
  const TempDir folder;
  LearnerOptions options = without_workers(folder);
  options.batch = 30;  // fewer are probed as they are
  // The product of the outputs with themselves is quadratic in the samples; a probe sees it because
  // the loss depends on a value.
  options.loss = LossFunction([](const at::Tensor& output, const at::Tensor& target) {
    const auto loss = torch::cross_entropy_loss(output.mm(output.t()).mm(output), target);
    return loss.item<double>() > 1e9 ? loss / 2 : loss;
  });
  Learner learner(mlp(), split_points(), options);
  const MemoryPlan plan = learner.plan({.model = mlp});
  EXPECT_EQ(plan.method, "probe") << plan.reason;
  EXPECT_EQ(plan.peak_bytes, peak_of_a_fit(learner)) << plan.str();
}

// AMX takes scratch memory for each 32 rows of a product.
TEST(LearnerPlan, ProbesProductsOf16BitTypesWithAnyNumberOfSamples) {
  const TempDir folder;
  torch::manual_seed(1);
  const auto data = tensor_dataset(torch::rand({420, 12}), torch::arange(420) % 3);
  for (const char* precision : {"bf16", "bf16-true"}) {
    for (const int64_t batch : {33, 40, 65, 97, 200}) {
      LearnerOptions options = without_workers(folder);
      options.batch = batch;
      options.precision = precision;
      const ModelOptions model{.classes = 3, .sample_shape = {12}, .hidden = {64, 32}};
      Learner learner(models::make("mlp", model), {.train = data}, options);
      const MemoryPlan plan = learner.plan({.advice = false});
      EXPECT_EQ(plan.method, "probe") << plan.reason;
      EXPECT_EQ(plan.peak_bytes, peak_of_a_fit(learner)) << precision << ' ' << batch;
    }
  }
}

TEST(LearnerPlan, SaysWhyItCannotPredict) {
  const TempDir folder;
  Learner own(make_net(), split_points(), without_workers(folder));
  EXPECT_EQ(own.plan().method, "none");
  EXPECT_THAT(own.plan().str(),
              StartsWith("cannot be predicted: the model is not from the registry"));

  LearnerOptions options = without_workers(folder);
  options.batch = 30;  // fewer are probed as they are
  options.loss = LossFunction([](const at::Tensor& output, const at::Tensor& target) {
    return torch::cross_entropy_loss(output.mm(output.t()).mm(output), target);
  });
  Learner squared(mlp(), split_points(), options);
  const MemoryPlan known = squared.plan();
  EXPECT_EQ(known.method, "meta") << known.reason;

  options.loss = LossFunction([](const at::Tensor& output, const at::Tensor& target) {
    const auto loss = torch::cross_entropy_loss(output.mm(output.t()).mm(output), target);
    return loss.item<double>() > 1e9 ? loss / 2 : loss;
  });
  Learner by_value(mlp(), split_points(), options);
  const MemoryPlan card = by_value.plan({.device = "cuda:24GiB"});
  EXPECT_FALSE(card.known());
  EXPECT_EQ(card.peak_bytes, 0);
  EXPECT_THAT(card.reason, StartsWith("aten::_local_scalar_dense reads the value of a tensor"));
}

TEST(LearnerPlan, DoesNotFitWhereOneConvolutionOfTwoImagesIsRefusedMemory) {
  constexpr int64_t kSide = 128, kMiB = int64_t{1} << 20;
  const TempDir folder;
  const auto images = tensor_dataset(torch::rand({20, 1, kSide, kSide}), torch::arange(20) % 3);
  ModelOptions model{.classes = 3, .sample_shape = {1, kSide, kSide}};
  model.width = 64;  // 4 MiB an image after the first convolution
  Learner learner(models::make("convnet", model), {.train = images}, without_workers(folder));
  auto& backend = memory::backend(c10::kCPU);
  backend.set_budget(tracked() + kMiB);
  const MemoryPlan plan = learner.plan();
  const MemoryPlan elsewhere = learner.plan({.device = "host:1GiB"});
  backend.set_budget({});
  EXPECT_FALSE(plan.fits);
  EXPECT_GE(plan.peak_bytes, 8 * kMiB);
  EXPECT_EQ(plan.largest_batch, 0);
  EXPECT_THAT(plan.str(), HasSubstr("the scratch of one operator, at least; does not fit"));
  EXPECT_EQ(elsewhere.method, "none") << "this host has too little memory for a prediction";
  EXPECT_EQ(learner.plan().method, "meta");
}

/// A model that is not in the registry and has an operator that the plan does not know.
struct StretchedImpl : torch::nn::Module {
  StretchedImpl() {
    body = register_module("body", torch::nn::Linear(kFeatures, 12));
    head = register_module("head", torch::nn::Linear(12, kClasses));
  }
  at::Tensor forward(const at::Tensor& x) { return head(torch::erfinv(body(x).tanh() / 2)); }
  torch::nn::Linear body{nullptr}, head{nullptr};
};
TORCH_MODULE(Stretched);

/// A recurrent layer over the features.
struct SeriesImpl : torch::nn::Module {
  SeriesImpl() {
    lstm =
        register_module("lstm", torch::nn::LSTM(torch::nn::LSTMOptions(1, 12).batch_first(true)));
    head = register_module("head", torch::nn::Linear(12, kClasses));
  }
  at::Tensor forward(const at::Tensor& x) {
    return head(std::get<0>(lstm(x.unsqueeze(2))).select(1, -1));
  }
  torch::nn::LSTM lstm{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(Series);

TEST(LearnerPlan, ProbesWhatMetaTensorsDoNotShow) {
  const TempDir folder;
  LearnerOptions options = without_workers(folder);
  options.batch = 16;  // 90 samples: the last batch has 10
  Learner learner(Model(Stretched()), split_points(), options);
  const auto again = [] { return Model(Stretched()); };
  torch::manual_seed(5);
  const auto expected = torch::rand({4});
  torch::manual_seed(5);
  const MemoryPlan plan = learner.plan({.model = again});
  EXPECT_TRUE(torch::equal(torch::rand({4}), expected)) << "the generator went on";
  EXPECT_EQ(plan.method, "probe");
  EXPECT_THAT(plan.reason, HasSubstr("aten::erfinv"));
  EXPECT_EQ(plan.largest_batch, 90);
  EXPECT_EQ(plan.categories.total(), plan.peak_bytes);
  EXPECT_GT(plan.categories[Category::optimizer], 0);
  EXPECT_EQ(plan.peak_bytes, peak_of_a_fit(learner)) << plan.str();

  const std::string half = "host:" + std::to_string(plan.start_bytes + plan.peak_bytes * 3 / 4);
  const MemoryPlan less = learner.plan({.device = half, .model = again});
  EXPECT_FALSE(less.fits);
  EXPECT_GT(less.largest_batch, 0);
  EXPECT_LT(less.largest_batch, 16);
  EXPECT_LE(less.largest_micro_batch, less.largest_batch);
}

TEST(LearnerPlan, OfAModelOfOnesOwnIsTracedIfItsOperatorsAreKnown) {
  const std::vector<std::function<Model()>> models{[] { return Model(make_net()); },
                                                   [] { return Model(Series()); }};
  for (const auto& make : models) {
    const TempDir folder;
    Learner learner(make(), split_points(), without_workers(folder));
    const MemoryPlan plan = learner.plan({.model = make});
    EXPECT_EQ(plan.method, "meta") << plan.reason;
    EXPECT_EQ(plan.peak_bytes, peak_of_a_fit(learner)) << plan.str();
  }
}

class PlanOf : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  [[nodiscard]] static Zoo zoo() { return Zoo(std::get<0>(GetParam())); }
  static void change(LearnerOptions& options) {
    options.optimizer.kind = std::get<1>(GetParam());
    options.workers = 0;
  }
};

TEST_P(PlanOf, AFitIsWhatItAllocates) {
  at::set_num_threads(1);
  const TempDir folder;
  LearnerOptions options = zoo().options(folder);
  change(options);
  Learner learner(zoo().model(), {.train = zoo().set(90, 1), .valid = zoo().set(30, 2)}, options);
  expect_as_planned(learner, "new");
  expect_as_planned(learner, "with optimizer state");
}

INSTANTIATE_TEST_SUITE_P(
    Zoo, PlanOf,
    ::testing::Combine(::testing::Values("mlp", "resnet9", "gpt", "resnet9_recomputed",
                                         "gpt_recomputed", "mlp_step_in_backward",
                                         "gpt_step_in_backward", "resnet9_bf16", "gpt_bf16",
                                         "gpt_bf16-true", "mlp_fp16", "gpt_recomputed_bf16"),
                       ::testing::Values("sgd", "adamw")));

/// Returns a Learner with one metric, of class labels or of two labels or values, whose validation
/// has whole batches and a short one.
Learner learner_of(const Metric& metric, const std::string& loss, LearnerOptions options) {
  options.metrics = {metric};
  options.loss = loss;
  if (loss == "cross_entropy") return {mlp(), split_points(90, 75), options};
  const auto set = [&](int64_t n) {
    const auto input = torch::randn({n, kFeatures}), values = input.slice(1, 0, 2);
    return tensor_dataset(input, loss == "mse" ? values : values.gt(0).to(torch::kFloat));
  };
  return {models::make("mlp", {.classes = 2, .sample_shape = {kFeatures}, .hidden = {8}}),
          {.train = set(90), .valid = set(75)},
          options};
}

/// Expects the plan of a fit with the metric, in whole batches and in parts, to be exact.
void expect_exact_with(const Metric& metric, const std::string& loss) {
  SCOPED_TRACE(MetricState(metric).name() + " beside " + loss);
  const TempDir folder;
  LearnerOptions options = without_workers(folder);
  options.batch = 20;
  for (const int64_t part : {20, 3}) {
    options.micro_batch = part;
    Learner learner = learner_of(metric, loss, options);
    expect_as_planned(learner, "new");
    expect_as_planned(learner, "with optimizer state");
    EXPECT_TRUE(std::isfinite(learner.history().back().metrics.at(0).value));
  }
}

// Their cross-entropy is computed in parts, of rows and of logits with the classes innermost.
TEST(LearnerPlan, IsExactWithManyClasses) {
  constexpr int64_t kMany = 20'000, kTokens = 64;
  const TempDir folder;
  for (const bool gpt : {false, true}) {
    LearnerOptions options = without_workers(folder);
    options.batch = gpt ? 8 : 8 * kTokens;
    const auto set = [&](int64_t batches) {
      const int64_t count = batches * options.batch;
      if (!gpt) return tensor_dataset(torch::rand({count, 4}), torch::randint(kMany, {count}));
      const auto tokens = torch::randint(kMany, {count, kTokens});
      return tensor_dataset(tokens, tokens.roll(-1, 1));
    };
    Model model = gpt ? models::make("gpt", {.classes = kMany,
                                             .sample_shape = {kTokens},
                                             .width = 8,
                                             .layers = 1,
                                             .heads = 1})
                      : models::make("mlp", {.classes = kMany, .sample_shape = {4}, .hidden = {4}});
    Learner learner(std::move(model), {.train = set(2), .valid = set(1)}, options);
    const int64_t logits = 8 * kTokens * kMany * int64_t{sizeof(float)};
    EXPECT_LT(learner.plan().peak_bytes, 3 * logits) << (gpt ? "gpt" : "mlp");
    expect_as_planned(learner, gpt ? "gpt" : "mlp");
  }
}

// oneDNN takes bytes beside the result.
TEST(LearnerPlan, IsExactWithProductsByOneDnn) {
  if (!memory::onednn_multiplies()) GTEST_SKIP() << "oneDNN multiplies with AVX-512 only";
  const memory::ProductsScope onednn(memory::ProductsBy::onednn);
  for (const bool gpt : {false, true}) {
    const TempDir folder;
    Learner learner = of_large_products(gpt, without_workers(folder));
    const int64_t planned = learner.plan({.advice = false}).peak_bytes;
    {
      const memory::ProductsScope libtorch(memory::ProductsBy::libtorch);
      EXPECT_GT(planned, learner.plan({.advice = false}).peak_bytes);
    }
    expect_as_planned(learner, gpt ? "gpt" : "mlp");
    expect_as_planned(learner, gpt ? "gpt again" : "mlp again");
  }
}

TEST(LearnerPlan, IsExactWithReferenceKernels) {
  if (!memory::onednn_multiplies()) GTEST_SKIP() << "oneDNN multiplies with AVX-512 only";
  std::map<memory::ProductsBy, std::vector<double>> losses;
  for (const auto by : {memory::ProductsBy::onednn, memory::ProductsBy::libtorch}) {
    const memory::ProductsScope products(by);
    const TempDir folder;
    LearnerOptions options = without_workers(folder);
    options.kernels.reference = true;
    Learner learner = of_large_products(true, options);
    expect_as_planned(learner, "gpt");
    for (const EpochRow& row : learner.history()) losses[by].push_back(row.train_loss);
  }
  EXPECT_EQ(losses[memory::ProductsBy::onednn], losses[memory::ProductsBy::libtorch]);
}

TEST(LearnerPlan, IsExactWithEachMetric) {
  for (const auto& name : metric_names()) {
    if (name == "top_5_accuracy") continue;  // the model has three classes
    const auto values = {"mae", "mse", "r2", "rmse"};
    const bool of_values = std::ranges::find(values, name) != values.end();
    expect_exact_with(name == "top_k" ? Metric(name, TopKOptions{.k = 2}) : Metric(name),
                      of_values ? "mse" : "cross_entropy");
  }
  for (const char* name : {"accuracy", "precision", "recall", "f1", "iou", "dice"})
    expect_exact_with(Metric(name, AccuracyOptions{.threshold = 0.3}), "bce_with_logits");
  for (const char* name : {"auroc", "average_precision"})
    expect_exact_with(name, "bce_with_logits");
}

/// Batches and micro-batches: parts of one size and of two, few and many, and a last batch in
/// parts.
struct Cut {
  int64_t batch = 0, part = 0;
};
constexpr std::array kCuts{Cut{6, 3}, Cut{5, 3}, Cut{32, 30}, Cut{48, 20}, Cut{80, 7}};

using PlanInParts = PlanOf;

TEST_P(PlanInParts, AFitIsWhatItAllocates) {
  at::set_num_threads(1);
  for (const auto& [batch, part] : kCuts) {
    const TempDir folder;
    LearnerOptions options = zoo().options(folder);
    change(options);
    options.batch = batch;
    options.micro_batch = part;
    Learner learner(zoo().model(), {.train = zoo().set(130, 1), .valid = zoo().set(70, 2)},
                    options);
    const std::string name = std::to_string(batch) + " in parts of " + std::to_string(part);
    expect_as_planned(learner, name.c_str());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Zoo, PlanInParts,
    ::testing::Combine(::testing::Values("mlp", "resnet9", "gpt", "resnet9_recomputed",
                                         "gpt_recomputed", "resnet9_bf16", "gpt_bf16",
                                         "gpt_bf16-true", "mlp_fp16", "gpt_recomputed_bf16"),
                       ::testing::Values("sgd", "adamw")));

TEST(LearnerPlan, ProbesWithoutTheBudgetOfTheFit) {
  const TempDir folder;
  const Zoo zoo("mlp_bf16");
  LearnerOptions options = zoo.options(folder);
  options.workers = 0;
  options.batch = 300;
  Learner learner(zoo.model(), {.train = zoo.set(300, 1), .valid = {}}, options);
  const int64_t whole = learner.plan({.advice = false}).reserved_bytes;
  memory::set_host_budget(tracked() + 4096);
  const MemoryPlan plan = learner.plan({.advice = false});
  EXPECT_EQ(memory::backend(c10::kCPU).budget(), tracked() + 4096);
  memory::set_host_budget({});
  EXPECT_EQ(plan.reserved_bytes, whole) << plan.reason;
  EXPECT_FALSE(plan.fits);
}

using ProbeOf = PlanOf;

TEST_P(ProbeOf, AFitSaysTheSameAsMetaTensors) {
  at::set_num_threads(1);
  const TempDir folder;
  PlanRequest request{.model = [] { return zoo().model(); }, .options = zoo().options(folder)};
  change(request.options);
  request.train = std::make_shared<BatchAllocations>(zoo().set(90, 1), true);
  request.valid = std::make_shared<BatchAllocations>(zoo().set(30, 2), false);
  FitProbe probe(request);
  std::vector<Cut> cuts(kCuts.begin(), kCuts.end());
  for (const int64_t batch : {7, 16, 45, 90}) cuts.push_back({batch, batch});
  for (const auto& [batch, part] : cuts) {
    if (part < batch && request.options.step_in_backward) continue;
    const FitTrace probed = probe.of(batch, {part, part}),
                   meta = trace_fit(request, batch, {part, part});
    const auto target = plan::parse_target("host:1GiB");
    const auto by_probe = plan::estimate(probed.trace, probed.counted, target);
    const auto by_meta = plan::estimate(meta.trace, meta.counted, target);
    EXPECT_EQ(by_probe.start_bytes, by_meta.start_bytes) << batch << ' ' << part;
    EXPECT_EQ(by_probe.peak_bytes, by_meta.peak_bytes) << batch << ' ' << part;
    EXPECT_EQ(by_probe.categories.bytes, by_meta.categories.bytes) << batch << ' ' << part;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Zoo, ProbeOf,
    ::testing::Combine(::testing::Values("mlp", "resnet9", "gpt", "resnet9_recomputed",
                                         "gpt_recomputed", "mlp_step_in_backward"),
                       ::testing::Values("sgd", "adamw")));

TEST(LearnerPlan, RefusesWhatCannotBeFitted) {
  const TempDir folder;
  Learner learner(mlp(), split_points(), without_workers(folder));
  const auto refusal = [&](const PlanOptions& options) {
    return outcome_of([&] { (void)learner.plan(options); });
  };
  EXPECT_THAT(refusal({.batch = -1}), StartsWith("ConfigError: [learner.plan] batch must be >= 1"));
  EXPECT_THAT(refusal({.batch = 91}),
              HasSubstr("batch 91 is larger than the training split of 90"));
  EXPECT_THAT(refusal({.device = "gpu"}), StartsWith("ConfigError: "));
  learner.set_data({}, 16);
  EXPECT_THAT(refusal({}), HasSubstr("without data in its train split"));
}

}  // namespace
}  // namespace tare::testing
