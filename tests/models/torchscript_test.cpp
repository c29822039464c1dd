// Tests models that are programs of TorchScript.
#include "models/torchscript.h"

#include <gmock/gmock.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/torch.h>

#include <fstream>
#include <functional>

#include "support/temp_dir.h"
#include "support/torchscript_file.h"
#include "tare/base/error.h"
#include "tare/config/field.h"
#include "tare/trace/trace.h"

namespace tare {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TempDir;

ModelOptions program_options(const std::string& file, bool trust = true) {
  const std::string yaml = "{file: " + file + ", trust: " + (trust ? "true}" : "false}");
  return {.options = {.node = config::parse_text(yaml, "options")}};
}

std::string saved(const TempDir& folder, const torch::jit::Module& program) {
  const std::string file = (folder / "own.pt").string();
  program.save(file);
  return file;
}

std::string refusal_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

class TorchscriptModel : public ::testing::Test {
 protected:
  TorchscriptModel() {
    torch::manual_seed(1);
    testing::write_torchscript(file_, 4);
  }
  TempDir folder_;
  std::string file_ = (folder_ / "net.pt").string();
};

TEST_F(TorchscriptModel, HasTheNamesAndTheGroupsOfTheProgram) {
  const Model model = models::make("torchscript", program_options(file_));
  std::vector<std::string> names;
  for (const auto& [name, tensor] : model.state()) names.push_back(name);
  EXPECT_THAT(names,
              ElementsAre("fc.weight", "fc.bias", "head.weight", "head.bias", "mean", "deviation"));
  ASSERT_EQ(model.layer_groups().size(), 2U);
  EXPECT_EQ(model.layer_groups()[0].name, "fc");
  EXPECT_EQ(model.layer_groups()[1].name, "head");
}

TEST_F(TorchscriptModel, TrainsAsTheSameLayersOfCpp) {
  Model model = models::torchscript(file_);
  const auto of = [&](size_t i) {
    return model.parameters()[i].tensor.detach().clone().requires_grad_();
  };
  std::vector<torch::Tensor> copy{of(0), of(1), of(2), of(3)}, own;
  torch::Tensor mean = torch::zeros({8}), deviation = torch::ones({8});
  for (const auto& p : model.parameters()) own.push_back(p.tensor);
  torch::optim::SGD mine(own, 0.1), theirs(copy, 0.1);
  for (uint64_t step = 0; step < 5; ++step) {
    const auto x = torch::randn({6, 2, 2}), y = torch::randint(10, {6}, torch::kLong);
    mine.zero_grad();
    theirs.zero_grad();
    torch::manual_seed(step);
    torch::cross_entropy_loss(model.forward(x), y).backward();
    torch::manual_seed(step);
    auto h = torch::linear(x.flatten(1), copy[0], copy[1]);
    h = torch::batch_norm(h, {}, {}, mean, deviation, true, 0.1, 1e-5, false);
    h = torch::linear(torch::dropout(torch::relu(h), 0.5, true), copy[2], copy[3]);
    torch::cross_entropy_loss(h, y).backward();
    mine.step();
    theirs.step();
  }
  for (size_t i = 0; i < own.size(); ++i) EXPECT_TRUE(torch::equal(own[i], copy[i])) << i;
  EXPECT_TRUE(torch::equal(model.buffers()[0].tensor, mean));
  EXPECT_TRUE(torch::equal(model.buffers()[1].tensor, deviation));
}

TEST_F(TorchscriptModel, KnowsWhetherItTrains) {
  Model model = models::torchscript(file_);
  const auto x = torch::randn({6, 2, 2});
  EXPECT_FALSE(torch::equal(model.forward(x), model.forward(x))) << "dropout";
  const EvaluationScope evaluation(model);
  EXPECT_TRUE(torch::equal(model.forward(x), model.forward(x)));
}

TEST_F(TorchscriptModel, FollowsItsTensorsToAnotherTypeAndLayout) {
  Model model = models::torchscript(file_);
  model.train(false);
  const auto x = torch::randn({6, 2, 2});
  const auto before = model.forward(x);
  model.module()->to(torch::kDouble);
  EXPECT_EQ(model.forward(x.to(torch::kDouble)).scalar_type(), torch::kDouble);
  EXPECT_TRUE(torch::allclose(model.forward(x.to(torch::kDouble)).to(torch::kFloat), before));
}

TEST_F(TorchscriptModel, IsPlannedOnMetaTensors) {
  const plan::MetaScope meta;
  const Model model = models::make("torchscript", program_options(file_));
  for (const auto& [name, tensor] : model.state()) EXPECT_TRUE(tensor.is_meta()) << name;
  const auto out = model.forward(torch::empty({6, 2, 2}));
  EXPECT_TRUE(out.is_meta());
  EXPECT_EQ(out.sizes(), torch::IntArrayRef({6, 10}));
  out.sum().backward();
  EXPECT_TRUE(model.parameters().front().tensor.grad().is_meta());
}

TEST_F(TorchscriptModel, GivesSeveralOutputsAndTakesSeveralInputs) {
  torch::jit::Module program("Two");
  program.register_parameter("w", torch::ones({3}).requires_grad_(), false);
  program.define("def forward(self, a, b):\n  return (a * self.w, b + self.w)\n");
  const Model model = models::torchscript(saved(folder_, program));
  const Outputs outputs =
      model.forward(Batch({{"a", torch::full({1, 3}, 2.F)}, {"b", torch::full({1, 3}, 3.F)}}, {}));
  ASSERT_EQ(outputs.size(), 2U);
  EXPECT_EQ(outputs[1].sum().item<float>(), 12);
}

TEST_F(TorchscriptModel, IsRefusedWithoutTrust) {
  const auto made = [&](const ModelOptions& options) {
    return refusal_of([&] { (void)models::make("torchscript", options); });
  };
  EXPECT_THAT(made({}), HasSubstr("options.file is missing"));
  EXPECT_THAT(made(program_options(file_, false)),
              HasSubstr("options.trust must be true, because " + file_));
  EXPECT_EQ(made(program_options(file_)), "nothing");
}

TEST_F(TorchscriptModel, OfABundleIsRefusedUntilItsProgramIsTrusted) {
  const ModelSpec spec{"torchscript", "options: {file: " + file_ + ", trust: true}"};
  EXPECT_THAT(refusal_of([&] { (void)models::make(spec); }),
              HasSubstr("runs the program " + file_ + ", which is not trusted here"));
  models::trust_program(file_);
  EXPECT_EQ(models::make(spec).parameters().size(), 4U);
}

TEST_F(TorchscriptModel, OfASpecIsRefusedWhereTheFileHoldsAnotherProgram) {
  const ModelSpec spec = *models::make("torchscript", program_options(file_)).spec();
  EXPECT_THAT(spec.options, HasSubstr(models::program_content(file_)));
  EXPECT_EQ(models::make(spec).parameters().size(), 4U);
  testing::write_torchscript(file_, 5);
  EXPECT_THAT(refusal_of([&] { (void)models::make(spec); }),
              HasSubstr("is another program than the one that the model was trained with"));
}

TEST_F(TorchscriptModel, NamesFilesThatHoldNoProgram) {
  const auto loaded = [](const std::string& file) {
    return refusal_of([&] { (void)models::torchscript(file); });
  };
  EXPECT_THAT(loaded((folder_ / "absent.pt").string()), HasSubstr("absent.pt"));
  EXPECT_THAT(loaded(folder_.path().string()), HasSubstr("is no regular file"));
  std::ofstream(folder_ / "noise.pt") << "no archive";
  EXPECT_THAT(loaded((folder_ / "noise.pt").string()), HasSubstr("is not one of TorchScript"));
  std::ifstream whole(file_, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(whole), {});
  std::ofstream(folder_ / "half.pt", std::ios::binary) << bytes.substr(0, bytes.size() / 2);
  EXPECT_THAT(loaded((folder_ / "half.pt").string()), HasSubstr("is not one of TorchScript"));
  torch::save(torch::ones({2}), (folder_ / "tensor.pt").string());
  EXPECT_THAT(loaded((folder_ / "tensor.pt").string()),
              HasSubstr("forward: is not among the methods"));
  torch::jit::Module constant("Constant");
  constant.define("def forward(self, x):\n  return x\n");
  EXPECT_THAT(loaded(saved(folder_, constant)), HasSubstr("torch.jit.freeze"));
}

TEST_F(TorchscriptModel, SaysWhatAForwardMayReturn) {
  torch::jit::Module program("Words");
  program.register_parameter("w", torch::ones({3}).requires_grad_(), false);
  program.define("def forward(self, x):\n  return {'x': x * self.w}\n");
  const Model model = models::torchscript(saved(folder_, program));
  EXPECT_THAT(refusal_of([&] {
                (void)model.forward(torch::ones({1, 3}));
              }),
              HasSubstr("a tensor, or a tuple or list of tensors"));
}

}  // namespace
}  // namespace tare
