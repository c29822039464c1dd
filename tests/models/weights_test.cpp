// Models that start from a state dict of PyTorch compute what the model in Python computes; the
// files are from tests/golden/torch_files.py.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/outcome.h"
#include "tare/checkpoint/torch_file.h"
#include "tare/config/field.h"
#include "tare/model/registry.h"

namespace tare {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr double kWeightRounding = 1e-5;

std::string golden(const std::string& name) {
  const char* source = std::getenv("TARE_SOURCE_DIR");
  return std::filesystem::path(source ? source : ".") / "tests/golden" / name;
}

/// Returns the options of the model in torch_vit.pt, which starts from that file.
ModelOptions options_with(int64_t classes) {
  return {.classes = classes,
          .sample_shape = {3, 16, 16},
          .weights = golden("torch_vit.pt"),
          .width = 16,
          .layers = 1,
          .heads = 2,
          .options = {.node = config::parse_text("{patch: 8, mlp: 32}", "options")}};
}

TEST(WeightsOfPyTorch, GiveTheOutputsOfPython) {
  Model model = models::make("vit", options_with(3));
  model.train(false);
  const torch::NoGradGuard no_grad;
  const auto saved = checkpoint::TorchFile::open(golden("torch_vit_output.pt")).tensors();
  ASSERT_EQ(saved.size(), 2U);
  const auto &input = saved[0].tensor, &output = saved[1].tensor;
  EXPECT_LT((model.forward(input) - output).abs().max().item<double>(), kWeightRounding);
}

TEST(WeightsOfPyTorch, LeaveAHeadForOtherClasses) {
  const Model three = models::make("vit", options_with(3)),
              five = models::make("vit", options_with(5));
  for (size_t i = 0; i < three.parameters().size(); ++i) {
    const auto &a = three.parameters()[i], &b = five.parameters()[i];
    if (a.name.starts_with("heads."))
      EXPECT_EQ(b.tensor.size(0), 5) << b.name;
    else
      EXPECT_TRUE(torch::equal(a.tensor, b.tensor)) << a.name;
  }
}

TEST(WeightsOfPyTorch, AreRefusedWhereTheyDoNotFit) {
  const auto refusal = [](const std::string& name, const ModelOptions& options) {
    return testing::outcome_of([&] { static_cast<void>(models::make(name, options)); });
  };
  EXPECT_THAT(refusal("mlp", {.weights = golden("torch_vit.pt")}),
              HasSubstr("hidden0.weight: is missing in the weights file"));
  EXPECT_THAT(refusal("mlp", {.weights = golden("torch_call.pt")}),
              StartsWith("FormatError: [torch_file.open]"));
}

}  // namespace
}  // namespace tare
