// The trace of a training step is that of the same step done for real on the host: the same blocks
// are born and freed in the same order, and every peak is equal to the byte.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <tuple>

#include "tare/config/field.h"
#include "tare/memory/backend.h"
#include "tare/memory/phase.h"
#include "tare/metric/loss.h"
#include "tare/metric/metric.h"
#include "tare/model/registry.h"
#include "tare/optim/optimizer.h"
#include "tare/trace/host_peak.h"
#include "trace/support.h"

namespace tare::plan {
namespace {

using memory::Phase;
using memory::PhaseKind;

constexpr std::array kPhases{PhaseKind::load, PhaseKind::forward, PhaseKind::backward,
                             PhaseKind::step, PhaseKind::validate};

struct Run {
  std::string model{}, optimizer{};
  int64_t batch = 0;
  bool frozen = false;        ///< all but the head
  int64_t micro_batches = 1;  ///< forward and backward passes before a step
  double dropout = 0;
};

/// Peaks of tracked host bytes above the start, per phase; nothing is measured on the meta device.
struct Peaks {
  bool on = false;
  int64_t start_bytes = memory::backend(c10::kCPU).usage().allocated_bytes;
  std::array<int64_t, memory::kPhaseKinds> bytes{};

  void measure(PhaseKind kind, const std::function<void()>& work) {
    const Phase phase(kind);
    std::optional<memory::PeakScope> scope;
    if (on) scope.emplace(c10::kCPU);
    work();
    if (!on) return;
    auto& peak = bytes[static_cast<size_t>(kind)];
    peak = std::max(peak, scope->peak_bytes() - start_bytes);
  }
};

constexpr int64_t kContext = 32, kTokens = 50;

config::OwnOptions own(const std::string& yaml) {
  return {.node = config::parse_text(yaml, "options")};
}

ModelOptions options_of(const Run& run) {
  ModelOptions options;
  if (run.model == "gpt") {
    options.width = 32, options.heads = 4, options.layers = 2, options.classes = kTokens;
    options.sample_shape = {kContext};
    options.dropout = run.dropout;
    return options;
  }
  if (run.model == "tabular") {
    options.sample_shape = {6};
    options.options = own("categories: [3, 40]");
    return options;
  }
  if (run.model != "mlp") options.width = 8;
  if (run.model == "vit") {
    options.width = 32, options.heads = 4, options.layers = 2, options.options = own("patch: 8");
    options.dropout = run.dropout;
  }
  const bool large = (run.model.starts_with("resnet") && run.model != "resnet9") ||
                     run.model.starts_with("mobilenet") || run.model == "vit";
  options.sample_shape = large ? std::vector<int64_t>{3, 32, 32} : std::vector<int64_t>{1, 28, 28};
  return options;
}

void freeze(const Model& model, const std::string& head) {
  for (const Parameter& p : model.parameters())
    if (head.empty() ? !p.name.starts_with("ln_f") : !p.name.starts_with(head))
      at::Tensor(p.tensor).requires_grad_(false);
}

/// A model, its optimizer and a batch.
class Training {
 public:
  explicit Training(const Run& run)
      : run_(run), options_(options_of(run)), model_(models::make(run.model, options_)) {
    if (run.frozen) freeze(model_, models::head_of(run.model, options_));
    OptimizerOptions options{.kind = run.optimizer == "adamw" ? "adamw" : "sgd"};
    if (run.optimizer == "sgd") options.momentum = 0;
    optimizer_ = make_optimizer(options, make_groups(model_, options));
    optimizer_->prepare();
  }

  void step(int64_t samples, Peaks& peaks) {
    model_.train(true);
    for (int64_t i = 0; i < run_.micro_batches; ++i) {
      load(samples, peaks);
      at::Tensor loss;
      peaks.measure(PhaseKind::forward, [&] { loss = forward(); });
      peaks.measure(PhaseKind::backward, [&] { loss.backward(); });
    }
    peaks.measure(PhaseKind::step, [&] {
      optimizer_->step();
      optimizer_->zero_grad();
    });
  }

  void validate(int64_t samples, Peaks& peaks) {
    model_.train(false);
    load(samples, peaks);
    const torch::NoGradGuard no_grad;
    peaks.measure(PhaseKind::validate, [&] {
      const at::Tensor output = model_.forward(input_).front(), loss = loss_.mean(output, target_);
      MetricState accuracy{Metric("accuracy")};
      accuracy.update(output, target_);
    });
  }

 private:
  void load(int64_t samples, Peaks& peaks) {
    peaks.measure(PhaseKind::load, [&] {
      std::vector<int64_t> sizes{samples};
      sizes.insert(sizes.end(), options_.sample_shape.begin(), options_.sample_shape.end());
      const bool tokens = run_.model == "gpt";
      input_ = Batch(tokens ? torch::zeros(sizes, torch::kLong) : torch::rand(sizes));
      if (run_.model == "siamese") input_.inputs.push_back({"right", torch::rand(sizes)});
      if (run_.model == "unet") sizes.erase(sizes.begin() + 1);  // a class for each pixel
      const bool many = tokens || run_.model == "unet";
      target_ = torch::zeros(many ? sizes : std::vector<int64_t>{samples}, torch::kLong);
    });
  }
  at::Tensor forward() { return loss_.mean(model_.forward(input_).front(), target_); }

  Run run_;
  ModelOptions options_;
  Model model_;
  std::unique_ptr<Optimizer> optimizer_;
  ResolvedLoss loss_ = resolve(Loss("cross_entropy"));
  Batch input_;
  at::Tensor target_;
};

/// Two steps, the second with a short last batch, and a validation.
void train(const Run& run, Peaks& peaks) {
  std::optional<Training> training;
  peaks.measure(PhaseKind::load, [&] { training.emplace(run); });
  training->step(run.batch, peaks);
  training->step(std::max<int64_t>(2, run.batch / 2), peaks);
  training->validate(run.batch, peaks);
}

void expect_equal(const Run& run) {
  at::set_num_threads(1);
  Peaks none, measured;
  const Trace trace = plan::trace([&] { train(run, none); });
  measured.on = true;
  const Sequence host = host_sequence([&] { train(run, measured); });
  ASSERT_EQ(difference(host, trace), "");
  ASSERT_THAT(unverified(trace), ::testing::IsEmpty());
  const HostPeak planned = host_peak(trace);
  for (const PhaseKind kind : kPhases) {
    const auto id = static_cast<uint32_t>(kind);
    const Peak* peak = planned.phase(id);
    ASSERT_NE(peak, nullptr) << memory::phase_name(id);
    EXPECT_EQ(peak->peak_bytes, measured.bytes[id]) << memory::phase_name(id);
  }
  EXPECT_EQ(planned.whole.peak_bytes, *std::ranges::max_element(measured.bytes));
}

class Exact : public ::testing::TestWithParam<std::tuple<const char*, const char*, int64_t>> {};

TEST_P(Exact, TrainingAndValidationAllocateAsPlanned) {
  const auto& [model, optimizer, batch] = GetParam();
  expect_equal({.model = model, .optimizer = optimizer, .batch = batch});
}

INSTANTIATE_TEST_SUITE_P(
    Zoo, Exact,
    ::testing::Combine(::testing::Values("mlp", "convnet", "resnet9", "resnet18", "resnet34",
                                         "resnet50", "gpt", "vit", "unet", "mobilenet_v3_large",
                                         "mobilenet_v3_small", "tabular", "siamese"),
                       ::testing::Values("sgd", "momentum", "adamw"),
                       ::testing::Values(2, 3, 7, 64, 256)),
    [](const auto& test) {
      return std::string(std::get<0>(test.param)) + "_" + std::get<1>(test.param) + "_" +
             std::to_string(std::get<2>(test.param));
    });

class ExactFor : public ::testing::TestWithParam<const char*> {};

TEST_P(ExactFor, FrozenTrunk) {
  for (const int64_t batch : {3, 64})
    expect_equal({.model = GetParam(), .optimizer = "adamw", .batch = batch, .frozen = true});
}

TEST_P(ExactFor, GradientsAccumulatedOverMicroBatches) {
  expect_equal({.model = GetParam(), .optimizer = "adamw", .batch = 7, .micro_batches = 3});
}

TEST(ExactAttention, WithDropout) {
  expect_equal({.model = "vit", .optimizer = "adamw", .batch = 7, .dropout = 0.1});
  expect_equal({.model = "gpt", .optimizer = "adamw", .batch = 7, .dropout = 0.1});
}

TEST(ExactBatch, OfOneImage) {
  for (const char* model : {"mlp", "convnet", "resnet9"})
    expect_equal({.model = model, .optimizer = "adamw", .batch = 1});
}

INSTANTIATE_TEST_SUITE_P(Zoo, ExactFor,
                         ::testing::Values("mlp", "convnet", "resnet9", "resnet18", "resnet34",
                                           "resnet50", "gpt", "vit", "unet", "mobilenet_v3_large",
                                           "mobilenet_v3_small", "tabular", "siamese"),
                         [](const auto& test) { return std::string(test.param); });

/// Steps of an optimizer that computes with tensors, as on a GPU.
void step_with_tensors(const OptimizerOptions& options, at::Device device) {
  const auto weight = torch::zeros({30, 20}, device), bias = torch::zeros({20}, device);
  std::vector<ParameterGroup> groups(1);
  groups[0] = {.parameters = {{.name = "w", .tensor = weight}, {.name = "b", .tensor = bias}},
               .lr = options.lr,
               .momentum = momentum_of(options),
               .weight_decay = options.weight_decay};
  for (const auto& parameter : groups[0].parameters) {
    at::Tensor(parameter.tensor).requires_grad_(true);
    at::Tensor(parameter.tensor).mutable_grad() = torch::zeros_like(parameter.tensor);
  }
  const auto optimizer = make_optimizer(options, groups, /*with_tensors=*/true);
  optimizer->prepare();
  optimizer->step();
  optimizer->step();
}

/// Without the blocks of one number of a formula, such as the base of a power, which lie on the
/// host whatever the device.
Sequence without_numbers(const Sequence& all) {
  Sequence kept;
  std::map<int64_t, int64_t> numbers;  // of the blocks that are kept
  for (const auto& [block, bytes] : all) {
    const auto next = static_cast<int64_t>(numbers.size());
    if (bytes > static_cast<int64_t>(sizeof(double))) numbers[block] = next;
    if (const auto at = numbers.find(block); at != numbers.end())
      kept.emplace_back(at->second, bytes);
  }
  return kept;
}

/// Products of bfloat16 take scratch memory on some processors.
OptimizerOptions muon_in_float32() {
  config::OwnOptions own{config::Node::map()};
  own.node.set("float32", config::to_node(true));
  return {.kind = "muon", .options = own};
}

OptimizerOptions every_moment_of_8_bits() {
  config::OwnOptions own{config::Node::map()};
  own.node.set("min_elements", config::to_node(int64_t{0}));
  return {.kind = "adamw8bit", .options = own};
}

class OptimizerOfAGpu : public ::testing::TestWithParam<OptimizerOptions> {};

TEST_P(OptimizerOfAGpu, TakesInItsTraceWhatItsTensorsTake) {
  const Trace trace = plan::trace([&] { step_with_tensors(GetParam(), c10::kMeta); });
  const Sequence host = host_sequence([&] { step_with_tensors(GetParam(), c10::kCPU); });
  EXPECT_EQ(without_numbers(host), without_numbers(sequence(trace)));
  const Trace card = plan::trace([&] { step_with_tensors(GetParam(), c10::kMeta); }, Machine::card);
  const auto births = std::ranges::count_if(
      card.events, [](const Event& event) { return event.bytes == int64_t{30} * 20 * 4; });
  EXPECT_GT(births, GetParam().kind == "adamw8bit" ? 1 : 4)
      << "weight, gradient and states, and what a step takes beside them";
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, OptimizerOfAGpu,
    ::testing::Values(OptimizerOptions{.kind = "nadam"}, OptimizerOptions{.kind = "rmsprop"},
                      OptimizerOptions{.kind = "rmsprop", .weight_decay = 0, .momentum = 0.9},
                      OptimizerOptions{.kind = "adadelta"}, OptimizerOptions{.kind = "adagrad"},
                      OptimizerOptions{.kind = "lion"}, muon_in_float32(),
                      every_moment_of_8_bits()),
    [](const auto& test) { return test.param.kind + std::to_string(test.index); });

}  // namespace
}  // namespace tare::plan
