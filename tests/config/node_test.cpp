// Configuration trees in code, and their canonical dump.
#include "tare/config/node.h"

#include <gtest/gtest.h>

#include "config/expect_error.h"

namespace tare::config {
namespace {

/// Same tree, sources and quotes aside.
bool same(const Node& a, const Node& b) {
  if (a.kind != b.kind || a.text != b.text || a.items.size() != b.items.size() ||
      a.entries.size() != b.entries.size())
    return false;
  for (size_t i = 0; i < a.items.size(); ++i)
    if (!same(a.items[i], b.items[i])) return false;
  for (size_t i = 0; i < a.entries.size(); ++i)
    if (a.entries[i].key != b.entries[i].key || !same(a.entries[i].value, b.entries[i].value))
      return false;
  return true;
}

TEST(Node, SetReplacesOrAppends) {
  Node node;
  node.set("b", Node::scalar("1"));
  node.set("a", Node::scalar("2"));
  node.set("b", Node::scalar("3"));
  ASSERT_EQ(node.entries.size(), 2u);
  EXPECT_EQ(node.entries[0].key, "b");
  EXPECT_EQ(node.find("b")->text, "3");
  EXPECT_EQ(node.find("c"), nullptr);
  EXPECT_EQ(Node::scalar("x").find("c"), nullptr);
}

TEST(Describe, SaysWhatStandsThere) {
  EXPECT_EQ(describe(Node()), "nothing");
  EXPECT_EQ(describe(Node::sequence({})), "a list");
  EXPECT_EQ(describe(Node::map()), "a mapping");
  EXPECT_EQ(describe(Node::scalar("12")), "12");
  EXPECT_EQ(describe(Node::string("12")), "\"12\"");
  EXPECT_EQ(describe(Node::scalar("a\nb")), "a\\nb");
  EXPECT_EQ(describe(Node::scalar(std::string(100, 'x'))), std::string(60, 'x') + "...");
}

TEST(Choice, GivesTheIndexOrTheAllowedNames) {
  EXPECT_EQ(choice(Node::scalar("valid"), {"train", "valid"}), 1u);
  const ConfigError error = error_of([] {
    (void)choice(Node::scalar("vaild"), {"train", "valid"});
  });
  EXPECT_EQ(error.problem(), "is not known (did you mean \"valid\"?)");
  EXPECT_EQ(error.allowed(), "train, valid");
  EXPECT_EQ(error.got(), "vaild");
  EXPECT_EQ(error_of([] { (void)choice(Node::sequence({}), {"a"}); }).got(), "a list");
}

// Found by fuzzing: written plainly it would end the document.
TEST(ToYaml, QuotesTextThatLooksLikeTheEndOfADocument) {
  for (const char* text : {"--- e", "...", "---"}) {
    const Node node = Node::scalar(text);
    EXPECT_EQ(to_yaml(parse_text(to_yaml(node), "dump")), to_yaml(node)) << text;
    EXPECT_EQ(parse_text(to_yaml(node), "dump").text, text);
  }
}

TEST(ToYaml, IsCanonical) {
  Node node = Node::map();
  node.set("name", Node::string("mlp"));
  node.set("hidden", Node::sequence({Node::scalar("64"), Node::scalar("32")}));
  node.set("seed", Node());
  node.set("nothing", Node::sequence({}));
  node.set("empty", Node::map());
  Node phase = Node::map();
  phase.set("epochs", Node::scalar("2"));
  phase.set("tag", Node::string("01"));
  node.set("phases", Node::sequence({phase, phase}));
  EXPECT_EQ(to_yaml(node),
            "name: mlp\nhidden: [64, 32]\nseed: ~\nnothing: []\nempty: {}\nphases:\n"
            "  - epochs: 2\n    tag: \"01\"\n  - epochs: 2\n    tag: \"01\"\n");
  EXPECT_TRUE(same(parse_text(to_yaml(node), "dump"), node));
}

TEST(ToYaml, AnyTextComesBack) {
  for (const char* text :
       {"",      " ",    " a",     "a ",   "#",    "a #b",     "a: b",        "a:",   "- a",
        "-",     "[a]",  "{a: b}", "*a",   "&a",   "!a",       "!!a",         "'",    "\"",
        "\\",    "a\nb", "a\n",    "\na",  "a\tb", "|",        ">",           "%a",   "@a",
        "`a",    ",",    "a,b",    "?",    "? a",  "~",        "null",        "true", "1",
        "-1",    "1e5",  ".5",     "---",  "...",  "<<",       "Größe",       "模型", "🙂",
        "a\\nb", "a\rb", "\r",     "\x1b", "\x7f", "\xc2\x9b", "\xe2\x80\xae"}) {
    Node node = Node::map();
    node.set("value", Node::string(text));
    node.set("list", Node::sequence({Node::string(text)}));
    Node nested = Node::map();
    if (*text != '\0') nested.set(text, Node::string(text));
    node.set("nested", Node::sequence({nested}));
    const std::string yaml = to_yaml(node);
    EXPECT_NO_THROW(EXPECT_TRUE(same(parse_text(yaml, "dump"), node)) << yaml) << yaml;
  }
}

}  // namespace
}  // namespace tare::config
