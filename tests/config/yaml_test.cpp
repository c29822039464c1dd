// YAML within limits, with places, and hostile files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/expect_error.h"
#include "support/damage.h"
#include "support/hostile.h"
#include "support/temp_dir.h"
#include "tare/base/io.h"
#include "tare/config/node.h"

namespace tare::config {
namespace {

using ::testing::HasSubstr;
using testing::HostileFile;
using testing::TempDir;

std::string refusal(const std::string& text) {
  return message_of([&] { (void)parse_text(text, "t.yaml"); });
}

TEST(Yaml, KeepsOrderAndPlaces) {
  const Node node = parse_text("b: 1\na:\n  - x\n  - 'y'\n", "t.yaml");
  ASSERT_EQ(node.kind, Kind::map);
  EXPECT_EQ(node.entries[0].key, "b");
  EXPECT_EQ(node.entries[1].key_source.str(), "t.yaml:2:1");
  const Node& list = *node.find("a");
  ASSERT_EQ(list.items.size(), 2u);
  EXPECT_EQ(list.items[1].source.str(), "t.yaml:4:5");
  EXPECT_FALSE(list.items[0].quoted);
  EXPECT_TRUE(list.items[1].quoted);
}

TEST(Yaml, EmptyTextIsNull) {
  for (const char* text : {"", "\n", "# only a comment\n", "---\n", "\xEF\xBB\xBF"})
    EXPECT_EQ(parse_text(text, "t").kind, Kind::null) << text;
}

TEST(Yaml, ReadsLinesThatEndInCarriageReturns) {
  const Node node = parse_text("a: x\r\nb:\r\n  - y\r\n", "t");
  EXPECT_EQ(node.find("a")->text, "x");
  EXPECT_EQ(node.find("b")->items.at(0).text, "y");
  EXPECT_EQ(node.find("b")->items.at(0).source.str(), "t:3:5");
  EXPECT_THAT(refusal("a: x\rb: y\n"), HasSubstr("t.yaml:1:5: a control character"));
}

TEST(Yaml, ReadsFilesAndNamesMissingOnes) {
  TempDir dir;
  io::write_atomically(dir / "a.yaml", "a: 1\n");
  EXPECT_EQ(parse_file(dir / "a.yaml").find("a")->text, "1");
  try {
    (void)parse_file(dir / "no.yaml");
    FAIL();
  } catch (const IoError& error) {
    EXPECT_EQ(error.path(), (dir / "no.yaml").string());
  }
}

TEST(Yaml, ExpandsAliases) {
  const Node node = parse_text("a: &x {k: 1}\nb: *x\n", "t.yaml");
  EXPECT_EQ(node.find("b")->find("k")->text, "1");
}

TEST(Yaml, ResolvesMergeKeys) {
  const Node node = parse_text(
      "a: &a {k: 1, l: 1}\nb: &b {l: 2, m: 2}\nc:\n  <<: [*a, *b]\n  k: 3\nd: {<<: *a}\n",
      "t.yaml");
  const Node& merged = *node.find("c");
  EXPECT_EQ(merged.entries.size(), 3u);
  EXPECT_EQ(merged.find("k")->text, "3");  // its own wins
  EXPECT_EQ(merged.find("l")->text, "1");  // the first of the list wins
  EXPECT_EQ(merged.find("m")->text, "2");
  EXPECT_EQ(node.find("d")->entries.size(), 2u);
  EXPECT_EQ(parse_text("\"<<\": 1", "t").entries[0].key, "<<");
}

TEST(Yaml, RefusesAMergeOfWhatIsNoMapping) {
  EXPECT_THAT(refusal("a:\n  <<: 3\n"), HasSubstr("a merge key takes mappings, got 3"));
  EXPECT_THAT(refusal("a: &a {k: 1}\nb:\n  <<: *a\n  <<: *a\n"), HasSubstr("<< is given twice"));
}

struct Refused {
  const char *text, *place, *problem;
};

TEST(Yaml, RefusesWithThePlace) {
  const Refused cases[] = {
      {"a: 1\nb: 2\na: 3\n", "t.yaml:3:1", "a is given twice"},
      {"x: {a: 1, 'a': 2}\n", "t.yaml:1:11", "a is given twice"},
      {"a:\n\t- 1\n", "t.yaml:2:1", "a tab stands in the indentation"},
      {"a:\n  \tb: 1\n", "t.yaml:2:3", "a tab stands in the indentation"},
      {"a: [1, 2\n", "t.yaml:2:1", "is not valid YAML"},
      {"a: 1\n  b: 2\n", "t.yaml:2:4", "is not valid YAML"},
      {"a: 1\n---\nb: 2\n", "t.yaml:2:1", "a second document"},
      {"a: &x [1, *x]\n", "t.yaml:1:11", "refers to itself"},
      {"a: &x {k: *x}\n", "t.yaml:1:11", "refers to itself"},
      {"a: *x\n", "t.yaml:1:4", "is not valid YAML"},
      {"a: !!python/object x\n", "t.yaml:1:4", "tags are not supported"},
      {"a: !x [1]\n", "t.yaml:1:4", "tags are not supported"},
      {"[1]: 2\n", "t.yaml:1:1", "a key must be plain text, got a list"},
      {"~: 2\n", "t.yaml:1:1", "a key must be plain text, got nothing"},
      {": 2\n", "t.yaml:1:1", "a key must be plain text"},
      {"a: &x b\n*x : 2\n", "t.yaml:2:1", "a key must be plain text"},
      {"a: b\x01\n", "t.yaml:1:5", "a control character"},
      {"a: 1\nb: \x1b[31m\n", "t.yaml:2:4", "a control character"},
      {"a: \xff\n", "t.yaml:1:4", "UTF-8"},
  };
  for (const auto& [text, place, problem] : cases) {
    EXPECT_THAT(refusal(text), HasSubstr(place)) << text;
    EXPECT_THAT(refusal(text), HasSubstr(problem)) << text;
  }
  EXPECT_THAT(refusal(std::string("a: \0b\n", 6)), HasSubstr("a control character"));
}

std::string repeated(const std::string& text, int64_t times) {
  std::string out;
  for (int64_t i = 0; i < times; ++i) out += text;
  return out;
}

TEST(Yaml, TakesWhatIsJustWithinTheLimits) {
  EXPECT_EQ(parse_text("#" + std::string(kMaxFileBytes - 1, 'x'), "t").kind, Kind::null);
  EXPECT_NO_THROW((void)parse_text(repeated("[", kMaxDepth) + repeated("]", kMaxDepth), "t"));
  EXPECT_NO_THROW((void)parse_text("[" + repeated("1,", 99'000) + "]", "t"));
  const std::string text = "a: &a " + std::string(kMaxFileBytes / 2, 'x') + "\nb: [";
  EXPECT_NO_THROW((void)parse_text(text + repeated("*a,", 13) + "]", "t"));
}

TEST(Yaml, LimitsTheNumberOfValues) {
  EXPECT_THAT(refusal("[" + repeated("1,", kMaxNodes) + "]"), HasSubstr("too many values"));
}

class HostileYaml : public ::testing::TestWithParam<HostileFile> {};

TEST_P(HostileYaml, IsRefusedWithThePlace) {
  TempDir dir;
  testing::overwrite(dir / "t.yaml", GetParam().content);
  testing::expect_refused("ConfigError", GetParam().message,
                          [&] { (void)parse_file(dir / "t.yaml"); });
}

std::string alias_bomb() {
  std::string bomb = "a: &a [" + repeated("x,", 9) + "]\n";
  for (char c = 'b'; c <= 'i'; ++c)
    bomb += std::string(1, c) + ": &" + c + " [" +
            repeated(std::string("*") + char(c - 1) + ",", 9) + "]\n";
  return bomb;
}

// Each level is kept once for its anchor and once more inside of the level around it.
std::string nested_anchors(const std::string& inside) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "&a" + std::to_string(i) + " [";
  return text + inside + repeated("]", 60);
}

std::string alias_chain() {
  std::string chain = "a0: &a0 [1]\n";
  for (int i = 1; i <= 70; ++i)
    chain += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) +
             "]\n";
  return chain;
}

std::vector<HostileFile> hostile_files() {
  const std::string text(kMaxFileBytes / 8, 'x');
  std::string keys;
  for (int i = 0; i < 1000; ++i) keys += "key_" + std::to_string(i) + ": 1,";
  return {
      {"AboveTheSize", "#" + std::string(kMaxFileBytes, 'x'), "is too large"},
      {"AMebibyteOfZeros", std::string(kMaxFileBytes, '\0'), "t.yaml:1:1: a control character"},
      {"AMebibyteOfBadUtf8", std::string(kMaxFileBytes, '\xff'), "t.yaml:1:1: a control character"},
      {"AMebibyteOfTabs", std::string(kMaxFileBytes, '\t'), "t.yaml:1:1: a tab"},
      {"OneLevelTooDeep", repeated("[", kMaxDepth + 1) + repeated("]", kMaxDepth + 1),
       "t.yaml:1:65: the nesting is too deep"},
      {"DeepLists", repeated("[", 10'000), "t.yaml:1:"},
      {"DeepMappings", repeated("{", 10'000), "t.yaml:1:"},
      {"DeepDashes", repeated("- ", 10'000), "t.yaml:1:"},
      {"DeepQuestions", repeated("? ", 10'000), "t.yaml:1:"},
      {"DeepKeys", repeated("{a: ", 10'000), "t.yaml:1:"},
      {"DeepListsOfMappings", repeated("[{a: ", 10'000), "t.yaml:1:"},
      {"DeepAliases", alias_chain(), "the nesting is too deep"},
      {"MergesOfManyKeys", "a: &a {" + keys + "}\nb: [" + repeated("{<<: *a},", 60) + "]",
       "there are too many values"},
      {"AliasBomb", alias_bomb(), "there are too many values"},
      {"NestedAnchorsOfManyValues", nested_anchors(repeated("1,", 2'000)), "too many values"},
      {"AliasesOfALongText", "a: &a " + text + "\nb: [" + repeated("*a,", 1000) + "]",
       "there is too much text"},
      {"AliasesOfALongKey",
       "a: &a {" + std::string(1000, 'x') + ": 1}\nb: [" + repeated("*a,", 10'000) + "]",
       "there is too much text"},
      {"MergesOfALongText", "a: &a {k: " + text + "}\nb: [" + repeated("{<<: *a},", 1000) + "]",
       "there is too much text"},
      {"NestedAnchorsOfALongText", nested_anchors(text + "," + text), "there is too much text"},
  };
}

INSTANTIATE_TEST_SUITE_P(All, HostileYaml, ::testing::ValuesIn(hostile_files()),
                         testing::test_name);

TEST(Yaml, ManyKeysInOneMappingStayCheap) {
  std::string text;
  for (int i = 0; i < 49'000; ++i) text += "key_" + std::to_string(i) + ": 1\n";
  // Compared pairwise these keys would take minutes.
  const testing::Refusal read = testing::refusal_of([&] {
    if (parse_text(text, "t").entries.size() != 49'000u) throw std::runtime_error("keys are lost");
  });
  EXPECT_EQ(read.outcome, "accepted");
  EXPECT_LT(read.cpu_s, 5);
}

}  // namespace
}  // namespace tare::config
