// Models by name.
#include "tare/model/registry.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>

#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/checkpoint/safetensors.h"
#include "tare/model/coded_weight.h"
#include "tare/model/stored.h"

namespace tare {
namespace {

std::string refusal(const std::string& name, const ModelOptions& options = {}) {
  try {
    (void)models::make(name, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Registry, NamesTheNearestModel) {
  EXPECT_NE(refusal("resnet_9").find("\"resnet9\""), std::string::npos) << refusal("resnet_9");
  EXPECT_NE(refusal("zzz").find("convnet"), std::string::npos) << "lists what there is";
}

TEST(Registry, ListsEachFamilyWithTheOptionsThatItTakes) {
  EXPECT_EQ(models::registry().names(), models::names());
  bool found = false;
  for (const auto& info : models::infos()) {
    if (info.name != "mlp") continue;
    found = true;
    EXPECT_FALSE(info.summary.empty());
    EXPECT_NE(info.defaults.find("hidden"), nullptr);
    EXPECT_NE(info.defaults.find("classes"), nullptr);
    EXPECT_EQ(info.defaults.find("heads"), nullptr) << "which gpt takes";
    EXPECT_EQ(info.defaults.find("options"), nullptr) << "which mlp does not have";
  }
  EXPECT_TRUE(found);
}

TEST(Registry, RefusesOptionsThatTheFamilyDoesNotTake) {
  EXPECT_NE(refusal("resnet9", {.hidden = {3}}).find("hidden"), std::string::npos);
  EXPECT_NE(refusal("resnet9", {.classes = 0}).find("classes"), std::string::npos);
}

TEST(Registry, BuildsAgainFromTheSpec) {
  const Model model = models::make("mlp", {.classes = 3, .sample_shape = {6}, .hidden = {5, 4}});
  ASSERT_TRUE(model.spec().has_value());
  const Model again = models::make(*model.spec());
  ASSERT_EQ(again.parameters().size(), model.parameters().size());
  for (size_t i = 0; i < again.parameters().size(); ++i) {
    EXPECT_EQ(again.parameters()[i].name, model.parameters()[i].name);
    EXPECT_EQ(again.parameters()[i].tensor.sizes(), model.parameters()[i].tensor.sizes());
  }
}

TEST(Registry, StartsFromWeightsAndKeepsAFreshHeadForOtherClasses) {
  const testing::TempDir folder;
  torch::manual_seed(1);
  const Model ten = models::make("resnet9", {.classes = 10, .width = 4});
  const auto file = folder / "ten.safetensors";
  checkpoint::write(file, ten.state());
  const Model same = models::make("resnet9", {.classes = 10, .weights = file.string(), .width = 4});
  for (size_t i = 0; i < ten.state().size(); ++i) {
    EXPECT_TRUE(torch::equal(ten.state()[i].tensor, same.state()[i].tensor)) << ten.state()[i].name;
  }
  const Model three = models::make("resnet9", {.classes = 3, .weights = file.string(), .width = 4});
  EXPECT_TRUE(torch::equal(three.parameters()[0].tensor, ten.parameters()[0].tensor));
  EXPECT_NE(refusal("resnet9", {.weights = file.string(), .width = 6}).find(" in the file and "),
            std::string::npos);
  EXPECT_NE(refusal("convnet", {.weights = file.string()}).find("is missing"), std::string::npos);
  EXPECT_THROW((void)models::make("resnet9", {.weights = "absent.safetensors"}), IoError);
}

TEST(Registry, StartsFromWeightsOfSixteenAndOfEightBits) {
  const testing::TempDir folder;
  const Model source = models::make("resnet9", {.width = 4});
  std::vector<NamedTensor> short_ones;
  for (const auto& [name, tensor] : source.state())
    short_ones.push_back({name, tensor.is_floating_point() ? tensor.to(torch::kBFloat16) : tensor});
  const auto eight_bits = as_fp8(source.state(), parameter_names(source));
  for (const auto& stored : {short_ones, eight_bits}) {
    const auto file = folder / "weights.safetensors";
    checkpoint::write(file, stored);
    const Model model = models::make("resnet9", {.weights = file.string(), .width = 4});
    const auto values = dequantised(stored, "test", file);
    for (const auto& [name, tensor] : model.state()) {
      const auto found = std::ranges::find(values, name, &NamedTensor::name);
      ASSERT_NE(found, values.end());
      EXPECT_TRUE(torch::equal(tensor, found->tensor.to(tensor.scalar_type()))) << name;
    }
    EXPECT_EQ(model.parameters()[0].tensor.scalar_type(), torch::kFloat);
  }
  auto without_scales = eight_bits;
  std::erase_if(without_scales, [](const auto& t) { return t.name.ends_with("_scale"); });
  checkpoint::write(folder / "no.safetensors", without_scales);
  EXPECT_NE(refusal("resnet9", {.weights = (folder / "no.safetensors").string(), .width = 4})
                .find("scale"),
            std::string::npos);
}

TEST(Registry, ResetsTheHeadAlone) {
  torch::manual_seed(1);
  Model model = models::make("resnet9", {.width = 4});
  std::vector<torch::Tensor> before;
  for (const auto& [name, tensor] : model.state()) before.push_back(tensor.clone());
  models::reset_head(model);
  const auto after = model.state();
  for (size_t i = 0; i < after.size(); ++i) {
    EXPECT_EQ(torch::equal(after[i].tensor, before[i]), !after[i].name.starts_with("fc."))
        << after[i].name;
  }
  Model foreign(torch::nn::Linear(2, 2));
  EXPECT_THROW(models::reset_head(foreign), StateError);
}

TEST(Registry, TakesAProgramsOwnModels) {
  models::add("described", "classifies four numbers",
              [](int64_t classes) { return Model(torch::nn::Linear(4, classes)); });
  EXPECT_EQ(models::family("described").summary, "classifies four numbers");
  models::add("own", [](int64_t classes) { return Model(torch::nn::Linear(4, classes)); });
  const Model model = models::make("own", {.classes = 7});
  EXPECT_EQ(model.forward(torch::rand({2, 4})).size(1), 7);
  EXPECT_EQ(model.spec()->name, "own");
}

}  // namespace
}  // namespace tare
