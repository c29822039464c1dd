// Every optimizer in a fit of 50 steps: plain, with clipping, in parts of a batch, with decay and
// averaged, against PyTorch 2.15 from the same weights on the same batches.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <bit>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "learner/zoo.h"
#include "tare/base/io.h"
#include "tare/callback/averaged_weights.h"
#include "tare/memory/backend.h"
#include "tare/optim/optimizer.h"
#include "tare/plan/plan.h"

namespace tare::testing {
namespace {

constexpr int64_t kStepsOfParity = 50, kBatchOfParity = 16, kInputs = 5, kHidden = 6, kLabels = 3;
// Rounding of operators that add in another order, over 50 steps on weights of about 1.
constexpr double kOfRounding = 1e-6;
// One bit of a gradient may change a code of adamw8bit, or a product of Muon in bfloat16: such a
// difference is a share of how far the weights have moved.
constexpr double kShareOfMovement = 0.1;

/// The float32 numbers in [-1, 1] that tests/golden/optimizers.py has.
torch::Tensor whole_numbers(int64_t count, int64_t factor, int64_t start) {
  return ((torch::arange(count) * factor + start) % 2001 - 1000).to(torch::kFloat) / 1000;
}

struct ParityNetImpl : torch::nn::Module {
  ParityNetImpl() {
    first = register_module("first", torch::nn::Linear(kInputs, kHidden));
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kHidden})));
    last = register_module("last", torch::nn::Linear(kHidden, kLabels));
    const torch::NoGradGuard no_grad;
    int64_t at = 0;
    for (auto& parameter : parameters())
      parameter.copy_(whole_numbers(parameter.numel(), 7919, 31 * at++).view(parameter.sizes()) /
                      2);
  }
  torch::Tensor forward(const torch::Tensor& x) { return last(norm(torch::tanh(first(x)))); }

  torch::nn::Linear first{nullptr}, last{nullptr};
  torch::nn::LayerNorm norm{nullptr};
};
TORCH_MODULE(ParityNet);

config::OwnOptions own_options(const std::string& key, const std::string& value) {
  config::OwnOptions own{config::Node::map()};
  own.node.set(key, config::to_node(value));
  return own;
}

/// Returns the optimizers by the names that the golden file has for them.
std::map<std::string, OptimizerOptions> parity_optimizers() {
  config::OwnOptions all_of_8_bits{config::Node::map()};
  all_of_8_bits.node.set("min_elements", config::to_node(int64_t{0}));
  return {
      {"sgd", {.kind = "sgd", .lr = 0.05, .momentum = 0}},
      {"sgd_momentum", {.kind = "sgd", .lr = 0.05}},
      {"sgd_nesterov", {.kind = "sgd", .lr = 0.05, .nesterov = true}},
      {"adam", {.kind = "adam", .lr = 0.01}},
      {"adamw", {.kind = "adamw", .lr = 0.01}},
      {"adamw8bit", {.kind = "adamw8bit", .lr = 0.01, .options = all_of_8_bits}},
      {"nadam", {.kind = "nadam", .lr = 0.01}},
      {"rmsprop", {.kind = "rmsprop", .lr = 0.003}},
      {"rmsprop_momentum", {.kind = "rmsprop", .lr = 0.001, .momentum = 0.9}},
      {"adadelta", {.kind = "adadelta", .lr = 1}},
      {"adagrad", {.kind = "adagrad", .lr = 0.01}},
      {"lion", {.kind = "lion", .lr = 0.003}},
      {"muon", {.kind = "muon", .lr = 0.01, .options = own_options("adjust_lr", "original")}},
  };
}

torch::Tensor flattened(const std::vector<torch::Tensor>& parameters) {
  std::vector<torch::Tensor> parts;
  for (const auto& parameter : parameters) parts.push_back(parameter.detach().cpu().flatten());
  return torch::cat(parts);
}

torch::Tensor trained_with(OptimizerOptions optimizer, const std::string& mode) {
  at::set_num_threads(1);
  const TempDir folder;
  LearnerOptions options = quiet(folder);
  options.metrics = {};
  options.batch = kBatchOfParity;
  options.micro_batch = mode == "accumulate" ? kBatchOfParity / 4 : kBatchOfParity;
  options.shuffle = false;
  options.workers = 0;
  if (mode == "clip") options.clip.norm = 0.1;
  if (mode == "ema") options.callbacks = {std::make_shared<Ema>(EmaOptions{.decay = 0.9})};
  optimizer.weight_decay = mode == "decay" ? 0.1 : 0;
  optimizer.decay_norm_and_bias = mode == "decay";
  options.optimizer = optimizer;
  constexpr int64_t kSamples = kStepsOfParity * kBatchOfParity;
  const auto inputs = whole_numbers(kSamples * kInputs, 104729, 17).view({kSamples, kInputs});
  const auto targets = (torch::arange(kSamples) * 7).floor_divide(3) % kLabels;
  Learner learner(ParityNet(), {.train = tensor_dataset(inputs, targets)}, options);
  EXPECT_EQ(learner.fit(1).steps, kStepsOfParity);
  std::vector<torch::Tensor> parameters;
  for (const auto& parameter : learner.model().parameters()) parameters.push_back(parameter.tensor);
  return flattened(parameters);
}

torch::Tensor weights_of_text(const std::string& hexadecimal) {
  std::vector<float> all;
  for (size_t at = 0; at < hexadecimal.size(); at += 8) {
    uint32_t bits = 0;
    std::from_chars(hexadecimal.data() + at, hexadecimal.data() + at + 8, bits, 16);
    all.push_back(std::bit_cast<float>(bits));
  }
  return torch::tensor(all);
}

nlohmann::json parity_golden() {
  return nlohmann::json::parse(io::read_text(std::string(TARE_GOLDEN) + "/optimizers.json"))
      .at("weights");
}

/// Whether this processor computes gradients bit for bit as the one that wrote the golden file.
bool computes_as_golden(const nlohmann::json& golden) {
  static const bool same = torch::equal(trained_with(parity_optimizers().at("sgd"), "plain"),
                                        weights_of_text(golden.at("sgd/plain").get<std::string>()));
  return same;
}

/// Saves a checkpoint inside of the second epoch.
class SaveInTheMiddle final : public Callback {
 public:
  [[nodiscard]] std::string name() const override { return "save_in_the_middle"; }
  Action after_batch(FitContext& context) override {
    if (context.epoch == 1 && context.batch == 2) context.learner.save("middle");
    return Action::proceed;
  }
};

class OptimizerParity : public ::testing::TestWithParam<std::string> {};

TEST_P(OptimizerParity, FiftyStepsGiveWhatPyTorchGives) {
  const auto golden = parity_golden();
  const bool same_processor = computes_as_golden(golden);
  const auto optimizer = parity_optimizers().at(GetParam());
  // Each of their operations is one of PyTorch's, in its order.
  const bool same_operations =
      std::set<std::string>{"sgd", "adam", "adamw", "adamw8bit", "lion", "muon"}.contains(
          optimizer.kind);
  const bool amplifies = optimizer.kind == "muon" || optimizer.kind == "adamw8bit";
  const torch::Tensor start = flattened(ParityNet()->parameters());
  for (const std::string mode : {"plain", "clip", "accumulate", "decay", "ema"}) {
    SCOPED_TRACE(mode);
    const auto text = golden.at(GetParam() + "/" + mode).get<std::string>();
    const torch::Tensor expected = weights_of_text(text), got = trained_with(optimizer, mode);
    ASSERT_EQ(got.sizes(), expected.sizes());
    const double difference = (got - expected).abs().max().item<double>();
    const double moved = (expected - start).abs().max().item<double>();
    EXPECT_LE(difference, amplifies && !same_processor ? kShareOfMovement * moved : kOfRounding);
    if (same_processor && same_operations && mode != "ema") {  // whose sum has another order
      EXPECT_EQ(difference, 0) << "bit for bit";
    }
  }
}

std::vector<std::string> names_of_parity() {
  std::vector<std::string> names;
  for (const auto& [name, options] : parity_optimizers()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Of, OptimizerParity, ::testing::ValuesIn(names_of_parity()),
                         [](const auto& test) { return test.param; });

TEST(OptimizerParity, HasEveryOptimizer) {
  std::set<std::string> compared;
  for (const auto& [name, options] : parity_optimizers()) compared.insert(options.kind);
  const auto kinds = optimizer_kinds();
  EXPECT_EQ(compared, std::set<std::string>(kinds.begin(), kinds.end()));
}

int64_t peak_with(Learner& learner) {
  const memory::PeakScope scope(c10::kCPU);
  learner.fit(1);
  return scope.peak_above_start_bytes();
}

// A matrix of more than 4096 elements, so that adamw8bit has codes.
TEST(OptimizerPlan, IsTheRealPeakToTheByte) {
  at::set_num_threads(1);
  auto options_of_kind = parity_optimizers();
  for (const auto& kind : optimizer_kinds()) options_of_kind[kind] = {.kind = kind};
  for (const auto& [name, optimizer] : options_of_kind) {
    SCOPED_TRACE(name);
    const TempDir folder;
    LearnerOptions options = quiet(folder);
    options.workers = 0;
    options.optimizer = optimizer;
    Learner learner(
        models::make("mlp", {.classes = 3, .sample_shape = {kFeatures}, .hidden = {64, 80}}),
        split_points(), options);
    for (const char* state : {"new", "with optimizer state"}) {
      const MemoryPlan plan = learner.plan({.advice = false});
      ASSERT_TRUE(plan.known()) << plan.reason;
      EXPECT_EQ(plan.categories.total(), plan.peak_bytes) << state;
      EXPECT_EQ(plan.peak_bytes, peak_with(learner)) << state << ": " << plan.str();
    }
  }
}

// A checkpoint has each state exactly: a fit that is cut off and resumed from its file continues
// bit for bit.
TEST(OptimizerResume, ContinuesEveryOptimizerBitForBit) {
  at::set_num_threads(1);
  auto options_of_kind = parity_optimizers();
  for (const auto& kind : optimizer_kinds()) options_of_kind[kind] = {.kind = kind};
  for (const auto& [name, optimizer] : options_of_kind) {
    SCOPED_TRACE(name);
    const TempDir folder;
    const auto make = [&, &chosen = optimizer] {
      LearnerOptions options = quiet(folder);
      options.workers = 0;
      options.optimizer = chosen;
      torch::manual_seed(5);
      return Learner(
          models::make("mlp", {.classes = 3, .sample_shape = {kFeatures}, .hidden = {64, 80}}),
          split_points(), options);
    };
    Learner straight = make(), first = make(), second = make();
    straight.fit(4);
    first.fit(4, {.callbacks = {std::make_shared<SaveInTheMiddle>()}});
    second.load("middle");
    EXPECT_GT(second.resume().steps, 0);
    EXPECT_TRUE(torch::equal(flat(straight.model()), flat(second.model())));
  }
}

}  // namespace
}  // namespace tare::testing
