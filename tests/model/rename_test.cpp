// Files of weights whose tensors have other names than those of the model.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/outcome.h"
#include "support/temp_dir.h"
#include "tare/checkpoint/safetensors.h"
#include "tare/config/field.h"
#include "tare/model/coded_weight.h"
#include "tare/model/registry.h"
#include "tare/model/stored.h"

namespace tare {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Rename = std::map<std::string, std::string>;

/// Holds a model, and a file with its state by the names of another program.
class RenamedWeights : public ::testing::Test {
 protected:
  void SetUp() override {
    torch::manual_seed(1);
    source_.emplace(models::make("resnet9", {.width = 4}));
    for (const auto& [name, tensor] : source_->state()) {
      const std::string other =
          name.starts_with("fc.") ? "head.out." + name.substr(3) : "backbone.body." + name;
      others_.push_back({other, tensor});
    }
    checkpoint::write(file(), others_);
  }

  [[nodiscard]] std::string file() const { return folder_ / "other.safetensors"; }

  static void expect_equal_outputs(Model& a, Model b) {
    a.train(false);
    b.train(false);
    const torch::NoGradGuard no_grad;
    const auto input = torch::rand({2, 1, 28, 28});
    EXPECT_TRUE(torch::equal(a.forward(input), b.forward(input)));
  }

  [[nodiscard]] static std::string outcome(const std::string& weights, const Rename& rename,
                                           int64_t classes = 10) {
    return testing::outcome_of([&] {
      static_cast<void>(models::make(
          "resnet9", {.classes = classes, .weights = weights, .rename = rename, .width = 4}));
    });
  }

  testing::TempDir folder_;
  std::optional<Model> source_;
  std::vector<NamedTensor> others_;
};

const Rename kRight{{"backbone.body.", ""}, {"head.out.", "fc."}};

TEST_F(RenamedWeights, GiveTheOutputsOfTheirModel) {
  expect_equal_outputs(*source_,
                       models::make("resnet9", {.weights = file(), .rename = kRight, .width = 4}));
}

TEST_F(RenamedWeights, AreScaledInEightBits) {
  const auto file = folder_ / "fp8.safetensors";
  auto stored = as_fp8(source_->state(), parameter_names(*source_));
  checkpoint::write(folder_ / "same.safetensors", stored);
  for (auto& each : stored) each.name = "net.body." + each.name;
  stored.push_back({"other.part", torch::zeros({1})});  // so that no prefix is that of all names
  checkpoint::write(file, stored);
  Model same = models::make("resnet9", {.weights = folder_ / "same.safetensors", .width = 4});
  expect_equal_outputs(
      same, models::make("resnet9", {.weights = file, .rename = {{"net.body.", ""}}, .width = 4}));
}

TEST_F(RenamedWeights, FollowTheLongestBeginningAndThenLoseAPrefix) {
  EXPECT_EQ(
      outcome(file(), {{"backbone.", "net."}, {"backbone.body.", ""}, {"head.out.", "fc."}}),
      "ConfigError: [models.make] rename has 'backbone.', but longer beginnings stand for all "
      "its names; allowed: backbone., head. or longer beginnings");
  const Rename longest{{"", "net."}, {"backbone.body.", "net."}, {"head.out.", "net.fc."}};
  EXPECT_THAT(outcome(file(), longest), HasSubstr("rename has '', but longer")) << "all are named";
  others_.push_back({"step", torch::zeros({1})});
  checkpoint::write(file(), others_);
  expect_equal_outputs(*source_,
                       models::make("resnet9", {.weights = file(), .rename = longest, .width = 4}));
}

TEST_F(RenamedWeights, LeaveAHeadForOtherClasses) {
  EXPECT_EQ(outcome(file(), kRight, 3), "accepted");
  EXPECT_THAT(
      outcome(file(), {{"backbone.body.", ""}}),
      AllOf(HasSubstr("fc.weight: is missing in the weights file"), HasSubstr("; rename gives ")));
}

TEST_F(RenamedWeights, MayLackAHeadAndTheCountsOfBatchNorms) {
  std::vector<NamedTensor> stored;
  for (auto& [name, tensor] : others_)
    if (!name.starts_with("head.out.") && !name.ends_with(".num_batches_tracked"))
      stored.push_back({name, tensor});
  ASSERT_LT(stored.size() + 2, others_.size());
  checkpoint::write(file(), stored);
  EXPECT_EQ(outcome(file(), {{"backbone.body.", ""}}), "accepted");
  stored.push_back({"another", torch::zeros({1})});
  checkpoint::write(file(), stored);
  EXPECT_THAT(outcome(file(), {{"backbone.body.", ""}}), HasSubstr("fc.weight: is missing"))
      << "the head may have another name";
}

TEST_F(RenamedWeights, AreRefusedForRulesThatAreWrong) {
  EXPECT_EQ(outcome(file(), {{"backbone.boddy.", ""}, {"head.out.", "fc."}}),
            "ConfigError: [models.make] rename has 'backbone.boddy.', with which no name in the "
            "file of weights begins; near is 'backbone.body.'; allowed: backbone., head. or longer "
            "beginnings");
  EXPECT_THAT(outcome(file(), {{"body.", ""}}), HasSubstr("; near is 'backbone.body.'"));
  EXPECT_EQ(outcome(file(), {{"head.out.weight", "head.out.bias"}}),
            "ConfigError: [models.make] rename gives 'head.out.bias' and 'head.out.weight' of the "
            "file of weights one name, got head.out.bias; allowed: a name of its own for each");
  EXPECT_THAT(outcome("", kRight), HasSubstr("rename has no effect without weights"));
  EXPECT_THAT(outcome(file(), {}), HasSubstr("(near is 'backbone.body.prep."));
}

TEST(ModelOptions, RenameIsAMappingOfTexts) {
  const auto read = [](const std::string& text) {
    return config::read<ModelOptions>(config::parse_text(text, "x.yaml"));
  };
  const ModelOptions options = read("{weights: a, rename: {\"a.b.\": \"\", head.: fc., 1: 01}}");
  EXPECT_EQ(options.rename, (Rename{{"a.b.", ""}, {"head.", "fc."}, {"1", "01"}}));
  EXPECT_EQ(read(config::to_yaml(config::to_node(options))), options);
  const auto refused = [&](const std::string& text) {
    return testing::outcome_of([&] { static_cast<void>(read(text)); });
  };
  EXPECT_EQ(refused("rename: [a., b.]"),
            "ConfigError: [config] x.yaml:1:9: rename must be a mapping of beginnings of names to "
            "what takes "
            "their place, got a list");
  EXPECT_THAT(refused("rename: {a.: }"),
              AllOf(HasSubstr("rename.a. must be text"), HasSubstr("'' for nothing")));
}

// An earlier Tare reads what a model is built from, and no file is needed to build it again.
TEST_F(RenamedWeights, AreNoPartOfHowToBuildTheModel) {
  const Model model = models::make("resnet9", {.weights = file(), .rename = kRight, .width = 4});
  EXPECT_EQ(model.spec()->options, source_->spec()->options);
  EXPECT_THAT(model.spec()->options, ::testing::Not(HasSubstr("rename")));
}

}  // namespace
}  // namespace tare
