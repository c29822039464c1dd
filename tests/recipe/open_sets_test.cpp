// A program adds one of each kind of thing that has a name, and a recipe of its own names them.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn.h>

#include <cmath>
#include <fstream>

#include "recipe/tiny.h"
#include "tare/base/error.h"
#include "tare/callback/registry.h"
#include "tare/data/collate.h"
#include "tare/inference/bundle.h"
#include "tare/inference/predictor.h"
#include "tare/metric/loss.h"
#include "tare/metric/metric.h"
#include "tare/optim/torch_optimizer.h"
#include "tare/recipe/plan.h"

namespace tare::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Two classes that the sign of the first feature separates.
datasets::Found signs(const DataOptions& options, bool) {
  auto generator = at::detail::createCPUGenerator(static_cast<uint64_t>(options.seed));
  const int64_t count = options.count > 0 ? options.count : 128;
  const at::Tensor rows = at::rand({count, 4}, generator).sub(0.5);
  return {.description = std::to_string(count) + " rows of signs",
          .data = tensor_dataset(rows, rows.select(1, 0).gt(0).to(at::kLong))};
}

struct SmoothedOptions {
  double by = 0.1;
};
void visit_fields(auto& visit, SmoothedOptions& o) { visit("by", o.by, config::between(0, 1)); }
Loss smoothed(const SmoothedOptions& options) {
  return {[by = options.by](const at::Tensor& output, const at::Tensor& target) {
            return at::cross_entropy_loss(output, target, {}, at::Reduction::Mean, -100, by);
          },
          "softmax"};
}

at::Tensor share_of_ones(const at::Tensor& output, const at::Tensor&) {
  return output.argmax(1).to(at::kFloat).mean();
}

/// The signs of the gradients, times the rate.
class SignDescent final : public Optimizer {
 public:
  explicit SignDescent(std::vector<ParameterGroup> groups, double scale = 1)
      : Optimizer(std::move(groups)), scale_(scale) {}
  [[nodiscard]] std::string kind() const override { return "signs"; }
  void step() override {
    const c10::NoGradGuard no_grad;
    for (auto& group : groups_)
      for (auto& parameter : group.parameters)
        if (parameter.tensor.grad().defined())
          parameter.tensor.sub_(parameter.tensor.grad().sign(), group.lr * scale_);
  }
  void prepare() override {}
  void clear() override {}
  [[nodiscard]] std::vector<NamedTensor> state() const override { return {}; }
  std::vector<std::string> load_state(const std::vector<NamedTensor>&) override { return {}; }
  StateChange set_groups(std::vector<ParameterGroup> groups) override {
    groups_ = std::move(groups);
    return {};
  }

 private:
  double scale_;
};

class CountEpochs final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "count_epochs"; }
  Action after_epoch(FitContext& context) override {
    context.row.metrics.push_back({"epoch_number", static_cast<double>(context.epoch)});
    return Action::proceed;
  }
  [[nodiscard]] CallbackFacts facts() const override { return {.columns = {"epoch_number"}}; }
};

struct LinearNetImpl : torch::nn::Module {
  explicit LinearNetImpl(int64_t classes) {
    head = register_module("head", torch::nn::Linear(4, classes));
  }
  torch::Tensor forward(const torch::Tensor& x) { return head(x); }
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(LinearNet);

/// Two rows of numbers, with their mean sum and their mean difference.
datasets::Found row_pairs(const DataOptions& options, bool) {
  auto generator = at::detail::createCPUGenerator(static_cast<uint64_t>(options.seed));
  const at::Tensor left = at::rand({200, 4}, generator), right = at::rand({200, 4}, generator);
  return {.description = "200 pairs of rows",
          .data = tensor_dataset(
              {{"left", left}, {"right", right}},
              {{"sum", (left + right).mean(1, true)}, {"gap", (left - right).mean(1, true)}})};
}

struct PairNetImpl : torch::nn::Module {
  PairNetImpl() {
    sum = register_module("sum", torch::nn::Linear(8, 1));
    gap = register_module("gap", torch::nn::Linear(8, 1));
  }
  std::pair<torch::Tensor, torch::Tensor> forward(const torch::Tensor& left,
                                                  const torch::Tensor& right) {
    const torch::Tensor both = torch::cat({left, right}, 1);
    return {sum(both), gap(both)};
  }
  torch::nn::Linear sum{nullptr}, gap{nullptr};
};
TORCH_MODULE(PairNet);

/// Series of 3 to 7 steps of two numbers.
datasets::Found series(const DataOptions& options, bool) {
  std::vector<Batch> samples;
  for (int64_t i = 0; i < 60; ++i) {
    at::Tensor steps = at::rand({3 + i % 5, 2}).add(i % 2);
    if (options.length > 0) steps = steps.slice(0, 0, options.length);
    samples.push_back({steps, at::full({}, i % 2, at::kLong)});
  }
  const Collate collate =
      options.collate ? collates::registry().make(*options.collate) : Collate(pad());
  return {.description = "60 series",
          .data = sample_dataset(std::move(samples), collate, {"low", "high"})};
}

/// Takes the lengths of series, or their mask.
struct StepNetImpl : torch::nn::Module {
  StepNetImpl() { head = register_module("head", torch::nn::Linear(2, 2)); }
  torch::Tensor forward(const torch::Tensor& steps, const torch::Tensor& second) {
    const torch::Tensor there =
        second.dim() == 2 ? second : torch::arange(steps.size(1)).lt(second.unsqueeze(1));
    const torch::Tensor weight = there.unsqueeze(2).to(torch::kFloat);
    return head((steps * weight).sum(1) / weight.sum(1));
  }
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(StepNet);

/// A model, an optimizer and a metric with an option of their own.
struct ScaleOptions {
  double scale = 1;
};
void visit_fields(auto& visit, ScaleOptions& o) { visit("scale", o.scale, config::above(0)); }
struct ShareOptions {
  int64_t of = 1;
};
void visit_fields(auto& visit, ShareOptions& o) { visit("of", o.of, config::at_least(0)); }

struct ScaledNetImpl : torch::nn::Module {
  ScaledNetImpl(int64_t classes, double by) : scale(by) {
    head = register_module("head", torch::nn::Linear(4, classes));
  }
  torch::Tensor forward(const torch::Tensor& x) { return head(x) * scale; }
  torch::nn::Linear head{nullptr};
  double scale;
};
TORCH_MODULE(ScaledNet);

models::Family scaled_net(const ScaleOptions& own) {
  return {.name = "scaled_net", .sample_shape = {4}, .make = [own](const ModelOptions& o) {
            return Model(ScaledNet(o.classes, own.scale));
          }};
}

OptimizerKind scaled_signs(const ScaleOptions& own) {
  return {.make = [own](const OptimizerOptions&, std::vector<ParameterGroup> groups, bool) {
    return std::make_unique<SignDescent>(std::move(groups), own.scale);
  }};
}

Metric share_of(const ShareOptions& own) {
  return Metric("share", [of = own.of](const at::Tensor& output, const at::Tensor&) {
    return output.argmax(1).eq(of).to(at::kFloat).mean();
  });
}

class OpenSets : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    datasets::registry().add("signs", "rows whose class is a sign", [] {
      return datasets::Kind{{}, signs};
    });
    datasets::registry().add("row_pairs", "two rows with two targets", [] {
      return datasets::Kind{{}, row_pairs};
    });
    datasets::registry().add("series", "short series of numbers", [] {
      return datasets::Kind{{"length", "collate"}, series};
    });
    models::add("step_net", [](int64_t) { return Model(StepNet()); });
    models::add("pair_net", [](int64_t) { return Model(PairNet()); });
    models::add("linear_net", [](int64_t classes) { return Model(LinearNet(classes)); });
    losses::registry().add<SmoothedOptions>("smoothed", "cross-entropy of smoothed labels",
                                            smoothed);
    metrics::registry().add("ones", "share of samples that are predicted as class 1",
                            [] { return Metric("ones", share_of_ones); });
    optimizers::registry().add("signs", "the signs of the gradients", [] {
      return OptimizerKind{.make = [](const OptimizerOptions&, std::vector<ParameterGroup> groups,
                                      bool) { return std::make_unique<SignDescent>(groups); }};
    });
    models::registry().add<ScaleOptions>("scaled_net", "a scaled linear layer", scaled_net);
    optimizers::registry().add<ScaleOptions>("scaled_signs", "scaled signs", scaled_signs);
    metrics::registry().add<ShareOptions>("share", "share that is predicted as a class", share_of);
    schedules::registry().add("root", "falls with the root of the progress", [] {
      return ScheduleCurve([](double p, double end) { return 1 + (end - 1) * std::sqrt(p); });
    });
    callbacks::registry().add("count_epochs", "the number of the epoch as a column",
                              [] { return std::make_shared<CountEpochs>(); });
  }

  [[nodiscard]] RecipeOptions recipe(const std::string& optimizer,
                                     const std::string& loss = "{smoothed: {by: 0.2}}") const {
    std::ofstream(folder_ / "own.yaml")
        << "name: own\nfolder: " << folder_.path().string()
        << "\ndevice: cpu\nbatch: 16\nworkers: 0\ndata: {name: signs, count: 200}\n"
           "model: {name: linear_net}\nloss: "
        << loss << "\nmetrics: [accuracy, ones]\noptimizer: " << optimizer
        << "\ncallbacks: [count_epochs, {early_stopping: {monitor: epoch_number, patience: 9}}]\n"
           "phases: [{name: only, epochs: 12, lr: 1.0e-1, schedule: root}]\nexport: own.tare\n";
    return read_recipe(folder_ / "own.yaml");
  }
  TempDir folder_;
};

TEST_F(OpenSets, ARecipeNamesWhatTheProgramAdds) {
  const RunReport report = run_recipe(recipe("{kind: signs, weight_decay: 0}"));
  const auto& last = report.phases[0].epochs.back();
  EXPECT_EQ(last.metrics.at(0).name, "accuracy");
  EXPECT_GT(last.metrics.at(0).value, 0.9);
  EXPECT_EQ(last.metrics.at(1).name, "ones");
  EXPECT_EQ(last.metrics.at(2).name, "epoch_number");
  EXPECT_EQ(report.data.substr(0, 17), "200 rows of signs");
  EXPECT_EQ(report.residual_bytes, 0);
  EXPECT_TRUE(std::filesystem::exists(report.exported->path));
}

TEST_F(OpenSets, ARecipeTrainsOnSeveralInputsAndTargets) {
  std::ofstream(folder_ / "pairs.yaml")
      << "name: pairs\nfolder: " << folder_.path().string()
      << "\ndevice: cpu\nbatch: 32\nworkers: 0\ndata: {name: row_pairs}\n"
         "model: {name: pair_net, classes: 1}\nloss: mse\nmetrics: [mae]\n"
         "callbacks: [{early_stopping: {monitor: mae.gap, patience: 20}}]\n"
         "phases: [{name: only, epochs: 20, lr: 3.0e-2}]\nexport: pairs.tare\n";
  const RecipeOptions options = read_recipe(folder_ / "pairs.yaml");
  const RecipePlan plan = plan_recipe(options);
  const RunReport report = run_recipe(options);
  const auto& last = report.phases[0].epochs.back();
  ASSERT_EQ(last.metrics.size(), 2U);
  EXPECT_EQ(last.metrics[0].name, "mae.sum");
  EXPECT_EQ(last.metrics[1].name, "mae.gap");
  EXPECT_LT(last.metrics[1].value, 0.1);
  EXPECT_EQ(plan.phases.at(0).peak_bytes, report.phases[0].peak_bytes);
  const Bundle bundle = open_bundle(report.exported->path);
  EXPECT_EQ(bundle.manifest().input_name, "left");
  ASSERT_EQ(bundle.manifest().more_inputs.size(), 1U);
  EXPECT_EQ(bundle.manifest().more_inputs[0].name, "right");
}

// What docs/your-own-data.md says of a data set of the program's own with `length` and `collate`.
TEST_F(OpenSets, ARecipeCutsAndPadsSequencesOfTheProgramsOwn) {
  std::ofstream(folder_ / "series.yaml")
      << "name: series\nfolder: " << folder_.path().string()
      << "\ndevice: cpu\nbatch: 16\nworkers: 0\nmodel: {name: step_net}\nmetrics: [accuracy]\n"
         "data: {name: series, length: 5, collate: {pad: {with: mask}}}\n"
         "phases: [{name: only, epochs: 1}]\nexport: series.tare\n";
  const RecipeOptions options = read_recipe(folder_ / "series.yaml");
  const RecipePlan plan = plan_recipe(options);
  const RunReport report = run_recipe(options);
  EXPECT_EQ(plan.phases.at(0).peak_bytes, report.phases[0].peak_bytes);
  const BundleManifest manifest = open_bundle(report.exported->path).manifest();
  EXPECT_THAT(manifest.sample_shape, ElementsAre(5, 2));
  EXPECT_THAT(manifest.any_size, ElementsAre(0));
  ASSERT_EQ(manifest.more_inputs.size(), 1U);
  EXPECT_EQ(manifest.more_inputs[0].name, "mask");
  Predictor predictor(report.exported->path);
  const Batch one({{"input", at::rand({1, 9, 2})}, {"mask", at::ones({1, 9}, at::kBool)}}, {});
  EXPECT_EQ(predictor.predict(one).front().size(1), 2);

  const auto refusal = [&](const std::string& assignment) -> std::string {
    try {
      (void)run_recipe(read_recipe(folder_ / "series.yaml", {assignment}));
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal("data.collate=null"), "accepted") << "pad, with lengths";
  EXPECT_THAT(refusal("data.collate=stack"), HasSubstr("(sequences: another data.collate)"));
  EXPECT_THAT(refusal("data.collate.pad.with=lenghts"),
              HasSubstr("data.collate.pad.with is not known (did you mean \"lengths\"?)"));
  EXPECT_THAT(refusal("data.folder=."),
              HasSubstr("data.folder is not taken by the data set series"));
  EXPECT_THAT(refusal("data.name=signs"), HasSubstr("is not taken by the data set signs"));
}

TEST_F(OpenSets, AModelAnOptimizerAndAMetricHaveOptionsOfTheirOwn) {
  const auto read = [&](const std::vector<std::string>& settings) {
    std::ofstream(folder_ / "scaled.yaml")
        << "name: scaled\nfolder: " << folder_.path().string()
        << "\nseed: 1\ndevice: cpu\nbatch: 16\nworkers: 0\ndata: {name: signs, count: 64}\n"
           "model: {name: scaled_net, options: {scale: 2}}\n"
           "optimizer: {kind: scaled_signs, weight_decay: 0, options: {scale: 3}}\n"
           "metrics: [{share: {of: 0}}]\nphases: [{name: only, epochs: 1, lr: 1.0e-2}]\n"
           "export: scaled.tare\n";
    return read_recipe(folder_ / "scaled.yaml", settings);
  };
  const auto figures = [&](const std::vector<std::string>& settings) {
    const RecipeOptions options = read(settings);
    const RunReport report = run_recipe(options, {.overwrite = true});
    EXPECT_EQ(plan_recipe(options).phases.at(0).peak_bytes, report.phases.at(0).peak_bytes);
    const EpochRow& row = report.phases.at(0).epochs.back();
    EXPECT_EQ(row.metrics.at(0).name, "share");
    const Model rebuilt = make_model(open_bundle(report.exported->path));
    return std::vector<double>{row.train_loss, row.metrics.at(0).value,
                               rebuilt.as<ScaledNetImpl>().scale};
  };
  const auto first = figures({});
  EXPECT_EQ(first[2], 2) << "the bundle has the option";
  EXPECT_EQ(figures({}), first);
  const auto model = figures({"model.options.scale=5"});
  EXPECT_NE(model[0], first[0]);
  EXPECT_EQ(model[2], 5);
  EXPECT_NE(figures({"optimizer.options.scale=0.5"})[0], first[0]);
  const auto share = figures({"metrics=[{share: {of: 1}}]"});
  EXPECT_EQ(share[0], first[0]);
  EXPECT_NEAR(share[1] + first[1], 1, 1e-6) << "sums of float32";
  const std::string dump = config::to_yaml(config::to_node(read({})));
  EXPECT_THAT(dump, HasSubstr("  options:\n    scale: 2\n"));
  EXPECT_THAT(dump, HasSubstr("metrics:\n  - share:\n      of: 0\n"));

  const auto refusal = [&](const std::string& setting) -> std::string {
    try {
      (void)read({setting});
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal("model.options.scale=0"),
              HasSubstr("command line: model.options.scale must be > 0, got 0"));
  EXPECT_THAT(refusal("model.options.scael=1"),
              HasSubstr("model.options.scael is not a known key (did you mean \"scale\"?)"));
  EXPECT_THAT(refusal("model.zzz=1"),
              HasSubstr("model.zzz is not a known key (if it is an option that only this choice "
                        "has, write it as options.zzz)"));
  EXPECT_THAT(refusal("optimizer.options={scael: 1}"),
              HasSubstr("optimizer.options.scael is not a known key (did you mean \"scale\"?)"));
  EXPECT_THAT(refusal("optimizer.weight_decay=0.5"),
              HasSubstr("weight_decay is not taken by scaled_signs"));
  EXPECT_THAT(refusal("optimizer.decay_norm_and_bias=true"),
              HasSubstr("decay_norm_and_bias is not taken by scaled_signs"));
  EXPECT_THAT(refusal("optimizer={kind: adam, options: {scale: 1}}"),
              HasSubstr("optimizer.options.scale is not a known key; there are no options"));
  EXPECT_THAT(refusal("model={name: mlp, options: {scale: 1}}"),
              HasSubstr("model.options.scale is not a known key; there are no options"));
  EXPECT_THAT(refusal("metrics=[{share: {off: 1}}]"),
              HasSubstr("metrics.0.share.off is not a known key (did you mean \"of\"?)"));
  EXPECT_THAT(refusal("metrics=[{error_rate: {of: 1}}]"),
              HasSubstr("metrics.0.error_rate.of is not a known key; there are no options"));
  EXPECT_THAT(refusal("model.options=3"), HasSubstr("model.options must be a mapping of options"));
}

TEST_F(OpenSets, TheyArePlannedAsTheyAllocate) {
  const RecipePlan plan = plan_recipe(recipe("{kind: sgd, weight_decay: 0}"));
  const RunReport report = run_recipe(recipe("{kind: sgd, weight_decay: 0}"));
  EXPECT_EQ(plan.phases[0].peak_bytes, report.phases[0].peak_bytes) << plan.phases[0].reason;
}

TEST_F(OpenSets, ALossWithOptionsIsPlannedAsItAllocates) {
  const auto options = [&] {
    return recipe("{kind: sgd, weight_decay: 0}", "{cross_entropy: {label_smoothing: 0.1}}");
  };
  const RecipePlan plan = plan_recipe(options());
  const RunReport report = run_recipe(options());
  EXPECT_EQ(plan.phases[0].method, "meta") << plan.phases[0].reason;
  EXPECT_EQ(plan.phases[0].peak_bytes, report.phases[0].peak_bytes);
  EXPECT_EQ(report.residual_bytes, 0);
  EXPECT_EQ(open_bundle(report.exported->path).manifest().loss,
            "{cross_entropy: {label_smoothing: 0.1}}");
}

TEST_F(OpenSets, ClassWeightsArePlannedAsTheyAllocate) {
  for (const char* loss : {"{cross_entropy: {class_weights: [1, 2.5]}}",
                           "{cross_entropy: {class_weights: [1, 2.5], label_smoothing: 0.1}}"}) {
    const auto options = [&] { return recipe("{kind: sgd, weight_decay: 0}", loss); };
    const RecipePlan plan = plan_recipe(options());
    const RunReport report = run_recipe(options());
    EXPECT_EQ(plan.phases[0].method, "meta") << plan.phases[0].reason;
    EXPECT_EQ(plan.phases[0].peak_bytes, report.phases[0].peak_bytes) << loss;
    EXPECT_EQ(report.residual_bytes, 0);
    EXPECT_EQ(resolve(losses::from_text(open_bundle(report.exported->path).manifest().loss))
                  .class_weights,
              (std::vector<double>{1, 2.5}));
  }
}

TEST_F(OpenSets, ClassWeightsOfAnotherNumberOfClassesAreRefusedAtTheirPlace) {
  const auto refusal = [&](const std::string& loss) -> std::string {
    try {
      (void)run_recipe(recipe("{kind: sgd, weight_decay: 0}", loss));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal("{cross_entropy: {class_weights: [1, 2, 3]}}"),
              ::testing::AllOf(HasSubstr(".yaml:"),
                               HasSubstr("loss.cross_entropy.class_weights needs a number for each "
                                         "of the 2 classes of the model"),
                               HasSubstr("3 of them")));
  EXPECT_THAT(refusal("{cross_entropy: {class_weights: [0, 0]}}"),
              HasSubstr("loss.cross_entropy.class_weights leave no class to learn"));
}

TEST_F(OpenSets, ALossIsWrittenWithItsOptionsUnlessAllAreDefaults) {
  const auto loss = [&](const std::string& text) {
    return config::to_yaml(config::to_node(recipe("{kind: adamw}", text).learner.loss));
  };
  EXPECT_EQ(loss("cross_entropy"), "cross_entropy\n");
  EXPECT_EQ(loss("{cross_entropy: {label_smoothing: 0}}"), "cross_entropy\n");
  EXPECT_EQ(loss("{smoothed: {by: 0.5}}"), "smoothed:\n  by: 0.5\n");
}

TEST_F(OpenSets, ListsHaveThem) {
  EXPECT_THAT(datasets::names(), ::testing::Contains("signs"));
  EXPECT_THAT(loss_names(), ::testing::Contains("smoothed"));
  EXPECT_THAT(metric_names(), ::testing::Contains("ones"));
  EXPECT_THAT(optimizer_kinds(), ::testing::Contains("signs"));
}

TEST_F(OpenSets, WhatIsWrongWithThemIsRefusedAtItsPlace) {
  const auto refusal = [&](const std::string& optimizer) -> std::string {
    try {
      (void)recipe(optimizer);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal("{kind: sings}"),
              ::testing::AllOf(HasSubstr("own.yaml:10:"), HasSubstr("optimizer.kind"),
                               HasSubstr("did you mean \"signs\"")));
  const auto of_loss = [&](const std::string& loss) -> std::string {
    try {
      (void)recipe("{kind: sgd}", loss);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(of_loss("{smoothed: {by: 2}}"),
              HasSubstr("own.yaml:8:23: loss.smoothed.by must be from 0 to 1"));
  EXPECT_THAT(of_loss("{smoothd: {by: 0.1}}"), HasSubstr("did you mean \"smoothed\""));
  EXPECT_THAT(of_loss("{cross_entropy: {smoothing: 0.1}}"),
              HasSubstr("loss.cross_entropy.smoothing is not a known key"));
  EXPECT_THAT(refusal("{kind: signs, beta2: 0.9}"),
              HasSubstr("optimizer.beta2 is not taken by signs"));
}

}  // namespace
}  // namespace tare::testing
