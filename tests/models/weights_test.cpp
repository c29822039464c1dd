// Models that start from a state dict of PyTorch compute what the model in Python computes; the
// files are from tests/golden/torch_files.py.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>

#include "support/outcome.h"
#include "support/temp_dir.h"
#include "tare/base/io.h"
#include "tare/checkpoint/safetensors.h"
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

/// Returns the largest difference of the model's outputs to those of Python.
double difference_to_python(const ModelOptions& options) {
  Model model = models::make("vit", options);
  model.train(false);
  const torch::NoGradGuard no_grad;
  const auto saved = checkpoint::TorchFile::open(golden("torch_vit_output.pt")).tensors();
  return (model.forward(saved.at(0).tensor) - saved.at(1).tensor).abs().max().item<double>();
}

TEST(WeightsOfPyTorch, GiveTheOutputsOfPython) {
  EXPECT_LT(difference_to_python(options_with(3)), kWeightRounding);
}

TEST(WeightsOfPyTorch, GiveTheOutputsOfPythonUnderOtherNames) {
  const testing::TempDir folder;
  std::string content = io::read_text(golden("torch_vit.pt"));
  const auto replace = [&](const std::string& name, const std::string& other) {
    ASSERT_EQ(name.size(), other.size()) << "else the file is damaged";
    for (size_t at = content.find(name); at != std::string::npos; at = content.find(name, at))
      content.replace(at, name.size(), other);
  };
  replace("module.encoder.", "module.trunk00.");
  replace("module.heads.head.", "module.classifier.");
  io::write_atomically(folder / "other.pth", content);
  ModelOptions options = options_with(3);
  options.weights = folder / "other.pth";
  EXPECT_THAT(testing::outcome_of([&] { static_cast<void>(models::make("vit", options)); }),
              HasSubstr(" is missing in the weights file"));
  options.rename = {
      {"module.", ""}, {"module.trunk00.", "encoder."}, {"module.classifier.", "heads.head."}};
  EXPECT_LT(difference_to_python(options), kWeightRounding);
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

TEST(Weights, OfABodyAloneLeaveTheModuleOfTheHeadNew) {
  const testing::TempDir folder;
  const std::string file = (folder / "body.safetensors").string();
  const ModelOptions options{.classes = 3, .sample_shape = {3, 32, 32}};
  const Model source = models::make("mobilenet_v3_small", options);
  std::vector<NamedTensor> body;
  for (const auto& [name, tensor] : source.state())
    if (name.starts_with("features.")) body.push_back({name, tensor.detach()});
  checkpoint::write(file, body, {});
  ModelOptions start = options;
  start.weights = file;
  ::testing::internal::CaptureStderr();
  const Model model = models::make("mobilenet_v3_small", start);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("classifier.0.weight"));
  for (size_t i = 0; i < source.parameters().size(); ++i) {
    const auto &given = source.parameters()[i], &now = model.parameters()[i];
    if (!given.name.starts_with("features.")) continue;
    EXPECT_TRUE(torch::equal(given.tensor, now.tensor)) << given.name;
  }
  // A part of the module around the head is no file of a body.
  for (const auto& [name, tensor] : source.state())
    if (name == "classifier.0.bias") body.push_back({name, tensor.detach()});
  checkpoint::write(file, body, {});
  EXPECT_THAT(testing::outcome_of([&] { (void)models::make("mobilenet_v3_small", start); }),
              HasSubstr("classifier.0.weight: is missing in the weights file"));
}

TEST(Weights, ThatAreNotFiniteAreNamed) {
  const testing::TempDir folder;
  const std::string file = (folder / "w.safetensors").string();
  const ModelOptions options{.classes = 2, .sample_shape = {3}, .hidden = {4}};
  const auto warned = [&](double value, const std::string& tensor) {
    const Model model = models::make("mlp", options);
    std::vector<NamedTensor> state = model.state();
    for (auto& [name, weights] : state) {
      weights = weights.detach().clone();
      if (name == tensor) weights.view({-1})[1] = value;
    }
    checkpoint::write(file, state, {});
    ModelOptions start = options;
    start.weights = file;
    ::testing::internal::CaptureStderr();
    static_cast<void>(models::make("mlp", start));
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(warned(std::nan(""), "hidden0.weight"),
              HasSubstr("weights of " + file +
                        ": 'hidden0.weight' has 1 value that is NaN or "
                        "infinite, which makes the loss NaN: take other weights"));
  EXPECT_THAT(warned(std::numeric_limits<double>::infinity(), "hidden0.bias"),
              HasSubstr("'hidden0.bias' has 1 value"));
  EXPECT_EQ(warned(1, "hidden0.weight"), "");
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
