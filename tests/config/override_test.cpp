// `key=value` on trees.
#include "tare/config/override.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/expect_error.h"
#include "tare/config/field.h"

namespace tare::config {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Node recipe() {
  return parse_text(
      "batch: 64\nphases:\n  - epochs: 1\n  - epochs: 2\n    lr: {from: 1, to: 2}\nseed:\n",
      "r.yaml");
}

std::string after(std::initializer_list<const char*> assignments) {
  Node root = recipe();
  for (const char* assignment : assignments) apply_override(root, assignment);
  return to_yaml(root);
}

TEST(Override, SetsValuesAtAnyDepth) {
  EXPECT_THAT(after({"batch=256"}), HasSubstr("batch: 256\n"));
  EXPECT_THAT(after({"phases.1.epochs=7"}), HasSubstr("epochs: 7\n"));
  EXPECT_THAT(after({"phases.1.lr.to=9"}), HasSubstr("from: 1\n      to: 9\n"));
}

TEST(Override, MakesMappingsOnTheWay) {
  EXPECT_THAT(after({"model.options.depth=3"}), HasSubstr("model:\n  options:\n    depth: 3\n"));
  EXPECT_THAT(after({"seed.value=3"}), HasSubstr("seed:\n  value: 3\n"));
  Node empty;
  apply_override(empty, "a=1");
  EXPECT_EQ(to_yaml(empty), "a: 1\n");
}

TEST(Override, KeysOfFlatMappingsHaveDots) {
  Node root = config::parse_text("set: {optimizer.lr: 0.1}\nmodel: {width: 4}", "f");
  config::apply_override(root, "set.optimizer.lr=0.2", {"set"});
  config::apply_override(root, "set.batch=8", {"set"});
  config::apply_override(root, "model.width=5", {"set"});
  EXPECT_EQ(config::to_yaml(root), "set:\n  optimizer.lr: 0.2\n  batch: 8\nmodel:\n  width: 5\n");
}

TEST(Override, ValuesAreYaml) {
  EXPECT_THAT(after({"hidden=[64,32]"}), HasSubstr("hidden: [64, 32]\n"));
  EXPECT_THAT(after({"lr={from: 1e-5, to: 1e-3}"}), HasSubstr("lr:\n  from: 1e-5\n"));
  EXPECT_THAT(after({"name='01'"}), HasSubstr("name: \"01\"\n"));
  EXPECT_THAT(after({"batch=null"}), HasSubstr("batch: ~\n"));
  EXPECT_THAT(after({"filter=a=b"}), HasSubstr("filter: a=b\n"));
  EXPECT_THAT(after({"phases=[]"}), HasSubstr("phases: []\n"));
}

TEST(Override, TakesOneMarkAsAText) {
  for (const char mark : std::string(",;|\t-?:#")) {
    Node root;
    apply_override(root, std::string("separator=") + mark);
    EXPECT_EQ(read<std::string>(*root.find("separator")), std::string(1, mark));
  }
  EXPECT_THAT(after({"batch=~", "a=7"}), HasSubstr("batch: ~\n")) << "null";
  EXPECT_THAT(after({"a=7"}), HasSubstr("a: 7\n")) << "a number";
}

TEST(Override, UnsetsAKeyWithoutAValue) {
  EXPECT_THAT(after({"batch="}), Not(HasSubstr("batch")));
  EXPECT_THAT(after({"phases.1.lr.to="}), HasSubstr("lr:\n      from: 1\n"));
  Node root = recipe();
  apply_override(root, "model.width=");
  EXPECT_TRUE(is_unset(*root.find("model")->find("width"))) << "which the reader may not know";
  EXPECT_FALSE(is_unset(*root.find("seed"))) << "the file says null";
}

TEST(Override, SaysWhereItsValuesCameFrom) {
  Node root = recipe();
  apply_override(root, "hidden=[64, 32]");
  EXPECT_EQ(root.find("hidden")->items[1].source.str(), "command line");
  EXPECT_EQ(root.entries.back().key_source.str(), "command line");
}

TEST(Override, RefusesAndLeavesTheTreeAsItWas) {
  const struct {
    std::string assignment, message;
  } cases[] = {
      {"batch", "needs a '='"},
      {"", "needs a '='"},
      {"=3", "needs a key"},
      {"a..b=3", "a..b has an empty part"},
      {".a=3", "has an empty part"},
      {"a.=3", "has an empty part"},
      {"phases.2.epochs=1",
       "phases.2.epochs names an item that the list does not have, got 2; allowed: 0 to 1"},
      {"phases.-1.epochs=1", "names an item that"},
      {"phases.last.epochs=1", "names an item that"},
      {"phases.99999999999999999999=1", "names an item that"},
      {"batch.size=3", "batch.size leads through \"64\""},
      {"hidden=[64,32", "hidden has a value that cannot be read"},
      {"hidden={a: 1, a: 2}", "a value that cannot be read"},
      {"new.path=[", "cannot be read"},
      {"a=" + std::string(kMaxArgumentBytes, 'x'), "an argument is too long"},
  };
  const std::string before = to_yaml(recipe());
  for (const auto& [assignment, message] : cases) {
    Node root = recipe();
    const ConfigError error = error_of([&, &text = assignment] { apply_override(root, text); });
    EXPECT_THAT(error.what(), HasSubstr(message));
    EXPECT_EQ(error.source().file, "command line");
    EXPECT_EQ(to_yaml(root), before) << assignment;
  }
  Node root = recipe();
  std::string deep = "a";
  for (int64_t i = 0; i < kMaxDepth; ++i) deep += ".a";
  EXPECT_THAT(message_of([&] { apply_override(root, deep + "=1"); }), HasSubstr("is too deep"));
}

TEST(Override, NamesAnItemOfAnEmptyList) {
  Node root = parse_text("list: []", "t");
  EXPECT_THAT(message_of([&] { apply_override(root, "list.0=1"); }), HasSubstr("an empty list"));
}

}  // namespace
}  // namespace tare::config
