// Models with the names of a Python original hold its tensors and compute what it computes; the
// numbers are from tests/golden/models.py.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tare/base/io.h"
#include "tare/config/field.h"
#include "tare/model/registry.h"
#include "tare/trace/trace.h"

namespace tare {
namespace {

using nlohmann::json;

constexpr double kOutputRounding = 1e-5;    // of outputs, of the largest where that is above 1
constexpr double kGradientRounding = 1e-4;  // of the length of the gradient

const json& originals() {
  static const json all = [] {
    const char* source = std::getenv("TARE_SOURCE_DIR");
    const auto folder = std::filesystem::path(source ? source : ".") / "tests/golden";
    return json::parse(io::read_text(folder / "models.json"));
  }();
  return all;
}

Model made(const json& original) {
  const auto text = original.at("options").get<std::string>();
  return models::make(original.at("model").get<std::string>(),
                      config::read<ModelOptions>(config::parse_text(text, "models.json")));
}

/// Returns what mixed() of the script returns.
torch::Tensor mixed(torch::IntArrayRef shape, int64_t start) {
  const auto i = torch::arange(c10::multiply_integers(shape));
  const auto rest = (i * i + 31 * i + 77 * start).remainder(10007);
  return (rest.to(torch::kDouble) / 5003.5 - 1).reshape(shape);
}

/// Does what fill() of the script does.
void fill(const Model& model) {
  std::map<std::string, torch::Tensor> sorted;
  for (const auto& [name, tensor] : model.state()) sorted.emplace(name, tensor);
  const torch::NoGradGuard no_grad;
  int64_t t = -1;
  for (auto& [name, tensor] : sorted) {
    ++t;
    if (!tensor.is_floating_point()) continue;
    auto values = mixed(tensor.sizes(), t);
    if (tensor.dim() > 1) {
      const auto inputs = static_cast<double>(tensor.numel() / tensor.size(0));
      values = values * std::sqrt(6 / inputs);
    } else if (name.ends_with("running_var") || name.ends_with("weight")) {
      values = 1 + 0.3 * values;
    } else {
      values = 0.1 * values;
    }
    tensor.copy_(values);
  }
}

/// Returns what image() and rows() of the script return.
Batch inputs_of(const json& original) {
  Batch batch;
  if (original.at("model") == "lstm") {
    const auto tokens = (37 * torch::arange(4 * 9)).remainder(256).view({4, 9});
    batch.inputs = {{"tokens", tokens}, {"lengths", torch::tensor({9, 3, 1, 7})}};
    return batch;
  }
  const auto shapes = original.at("inputs").get<std::vector<std::vector<int64_t>>>();
  for (size_t i = 0; i < shapes.size(); ++i) {
    auto x = mixed(shapes[i], 1000 * static_cast<int64_t>(i + 1)).to(torch::kFloat);
    if (original.at("model") == "tabular") {
      const auto count = shapes[i][0];
      x = torch::stack({torch::arange(count).remainder(4).to(torch::kFloat),
                        torch::arange(count).remainder(30).to(torch::kFloat)},
                       1);
      x = torch::cat({x, mixed({count, shapes[i][1] - 2}, 1000).to(torch::kFloat)}, 1);
    }
    batch.inputs.push_back({"input" + std::to_string(i), x});
  }
  return batch;
}

void expect_near(const torch::Tensor& got, const json& wanted) {
  const auto values = wanted.get<std::vector<double>>();
  const auto flat = got.flatten().to(torch::kDouble).slice(0, 0, std::ssize(values));
  const auto expected = torch::tensor(values, torch::kDouble);
  ASSERT_EQ(flat.numel(), expected.numel());
  const double largest = std::max(1.0, expected.abs().max().item<double>());
  EXPECT_LT((flat - expected).abs().max().item<double>(), kOutputRounding * largest);
}

double gradient_length(const Model& model) {
  double sum = 0;
  for (const auto& p : model.parameters())
    sum += p.tensor.grad().to(torch::kDouble).square().sum().item<double>();
  return std::sqrt(sum);
}

class Originals : public ::testing::TestWithParam<size_t> {
 protected:
  [[nodiscard]] static const json& original() { return originals().at(GetParam()); }
};

TEST_P(Originals, HaveTheseTensors) {
  const plan::MetaScope without_memory;
  const Model model = made(original());
  std::map<std::string, std::vector<int64_t>> got, wanted;
  for (const auto& [name, tensor] : model.state()) got[name] = tensor.sizes().vec();
  for (const auto& entry : original().at("tensors"))
    wanted[entry.at(0).get<std::string>()] = entry.at(1).get<std::vector<int64_t>>();
  EXPECT_EQ(got, wanted);
}

TEST_P(Originals, ComputeTheseOutputsAndGradients) {
  if (!original().contains("output")) return;  // too large a model: its tensors alone are listed
  Model model = made(original());
  fill(model);
  model.train(false);
  const Batch batch = inputs_of(original());
  const auto output = model.forward(batch).front();
  EXPECT_EQ(output.sizes().vec(), original().at("shape").get<std::vector<int64_t>>());
  expect_near(output.detach(), original().at("output"));
  (output * mixed(output.sizes(), 3000)).sum().backward();
  const auto length = original().at("gradient").get<double>();
  EXPECT_NEAR(gradient_length(model), length, kGradientRounding * length);
}

TEST_P(Originals, UpdateTheseStatisticsInTraining) {
  if (!original().contains("statistics")) return;  // it has no batch norm
  Model model = made(original());
  fill(model);
  model.train(true);
  static_cast<void>(model.forward(inputs_of(original())));
  const auto statistics = original().at("statistics").begin();
  const auto buffers = model.buffers();
  const auto found = std::ranges::find(buffers, statistics.key(), &NamedTensor::name);
  ASSERT_NE(found, buffers.end()) << statistics.key();
  expect_near(found->tensor, statistics.value());
}

INSTANTIATE_TEST_SUITE_P(Models, Originals, ::testing::Range<size_t>(0, 10),
                         [](const auto& test) { return std::to_string(test.param); });

TEST(OriginalModels, AreAllCompared) { EXPECT_EQ(originals().size(), 11U); }

}  // namespace
}  // namespace tare
