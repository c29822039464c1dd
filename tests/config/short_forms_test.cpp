// Short forms of a recipe: expanded all at once, or only where a key leads through one.
#include "tare/config/short_forms.h"

#include <gtest/gtest.h>

#include "tare/base/error.h"

namespace tare {
namespace {

constexpr const char* kRecipe =
    "model: mlp\noptimizer: adam\nphases: [{schedule: cosine}, {schedule: linear}]\n";

std::string with(const char* assignment) {
  config::Node root = config::parse_text(kRecipe, "r.yaml");
  config::apply_recipe_override(root, assignment);
  return config::to_yaml(root);
}

TEST(ShortForms, AreExpandedEverywhere) {
  config::Node root = config::parse_text(kRecipe, "r.yaml");
  config::expand_short_forms(root);
  EXPECT_EQ(root.find("model")->find("name")->text, "mlp");
  EXPECT_EQ(root.find("optimizer")->find("kind")->text, "adam");
  EXPECT_EQ(root.find("phases")->items[1].find("schedule")->find("kind")->text, "linear");
}

TEST(ShortForms, AnOverrideExpandsOnlyWhatItLeadsThrough) {
  EXPECT_NE(with("model.hidden=[4]").find("model:\n  name: mlp\n"), std::string::npos);
  EXPECT_NE(with("model.hidden=[4]").find("optimizer: adam\n"), std::string::npos);
  const std::string second = with("phases.1.schedule.warmup=0.1");
  EXPECT_NE(second.find("schedule: cosine\n"), std::string::npos) << second;
  EXPECT_NE(second.find("kind: linear\n"), std::string::npos) << second;
  EXPECT_NE(with("model=resnet9").find("model: resnet9\n"), std::string::npos);
  EXPECT_THROW((void)with("model"), ConfigError);
}

}  // namespace
}  // namespace tare
