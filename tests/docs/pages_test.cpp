// Tests that the pages name what is there: files, programs, commands, options, keys of a recipe.
// Tests their form too: no long lines or sentences, and no words of a private dialect.
#include "docs/pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "support/program.h"
#include "support/settings.h"
#include "tare/cli/entries.h"
#include "tare/model/registry.h"
#include "tare/recipe/recipe.h"
#include "tare/recipe/recipe_keys.h"
#include "tare/search/samplers.h"
#include "tare/sweep/sweep_options.h"

namespace tare::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::UnorderedElementsAreArray;

TEST(Pages, LinksLeadSomewhere) {
  int links = 0;
  for (const Page& page : pages()) {
    for (const auto& link : page.links) {
      if (link.starts_with("https://")) continue;
      ++links;
      EXPECT_TRUE(fs::exists(source_folder() / fs::path(page.name).parent_path() / link))
          << page.name << ": " << link;
    }
  }
  EXPECT_GT(links, 10);
}

// A blank line before and behind: no more and no fewer.
TEST(Pages, ListWhatOnlyACardCanShow) {
  const std::string tests = io::read_text(TARE_CARD_TESTS);
  EXPECT_FALSE(tests.empty());
  EXPECT_THAT(io::read_text(source_folder() / "docs/development.md"),
              HasSubstr("\n\n" + tests + '\n'));
}

bool has_source(const std::string& program) {
  if (program.empty()) return true;  // `build/bin/` itself
  for (const char* folder : {"tests/bench", "recipes"})
    if (fs::exists(source_folder() / folder / (program + ".cpp"))) return true;
  return false;
}

TEST(Pages, FilesAndProgramsAreThere) {
  int files = 0;
  for (const Page& page : pages()) {
    for (const auto& span : page.spans) {
      const std::string path = span.substr(0, span.find(' '));
      if (path.starts_with("build/bin/")) {
        EXPECT_TRUE(has_source(path.substr(10))) << page.name << ": " << path;
      } else if (!matches(path, "^((?:framework|tests|recipes|models|docs)/[\\w./-]*)$").empty()) {
        EXPECT_TRUE(fs::exists(source_folder() / path)) << page.name << ": " << path;
        ++files;
      }
    }
  }
  EXPECT_GT(files, 10);
}

std::string help_of(const std::string& command) {
  static std::map<std::string, std::string> known;
  const auto [entry, is_new] = known.try_emplace(command);
  if (is_new) entry->second = run_program("tare", {command, "--help"}).out;
  return entry->second;
}

TEST(Pages, CommandsAndTheirOptionsExist) {
  int commands = 0;
  for (const Page& page : pages()) {
    std::vector<std::string> candidates = page.spans;
    for (const Block& block : page.blocks)
      for (auto& line : matches(block.text, "\\$ ([^\n]*)")) candidates.push_back(line);
    for (const auto& text : candidates) {
      for (const auto& command : matches(text, "^tare ([a-z]+(?:-[a-z]+)*)")) {
        ++commands;
        const std::string help = help_of(command);
        EXPECT_THAT(help, HasSubstr("Usage: tare " + command)) << page.name << ": " << text;
        for (const auto& option : matches(text, "(--[a-z-]+)"))
          EXPECT_THAT(help, HasSubstr("  " + option)) << page.name << ": " << text;
      }
    }
  }
  EXPECT_GT(commands, 10);
}

TEST(Pages, PresetsAreThoseOfCMake) {
  const std::string presets = io::read_text(source_folder() / "CMakePresets.json");
  for (const auto& name : {"release", "dev", "asan", "tsan"})
    EXPECT_THAT(read_page("docs/development.md").keys, Contains(name));
  for (const Page& page : pages())
    for (const auto& span : page.spans)
      for (const auto& name : matches(span, "--preset ([a-z]+)"))
        EXPECT_THAT(presets, HasSubstr("\"name\": \"" + name + "\"")) << page.name;
}

TEST(Pages, YamlIsReadByTheConfiguration) {
  int blocks = 0;
  for (const Page& page : pages()) {
    for (const Block& block : page.blocks) {
      if (block.language != "yaml") continue;
      ++blocks;
      const auto node = config::parse_text(block.text, page.name);
      if (node.find("phases") != nullptr)
        EXPECT_NO_THROW((void)config::read<RecipeOptions>(node)) << page.name;
      else if (node.find("parameters") != nullptr)
        EXPECT_NO_THROW((void)config::read<sweep::SweepOptions>(node)) << page.name;
      else
        EXPECT_NO_THROW((void)config::read<DataOptions>(node)) << page.name;
    }
  }
  EXPECT_GE(blocks, 1);
}

/// Whether it is an option of a kind of schedule alone: those that all kinds share are keys of a
/// recipe.
bool is_of_schedule(const cli::EntryKind& kind, const cli::NamedEntry& entry,
                    const RecipeKey& option) {
  return kind.key == "schedule" && entry.name != "one_cycle" &&
         !is_recipe_key("phases.N.schedule." + cli::option_name(option));
}

TEST(Pages, TheRecipePageHasEveryKeyAndNoOther) {
  std::set<std::string> fields, texts;
  for (const auto& key : recipe_keys()) {
    EXPECT_NE(key.meaning, "") << key.path << " has no text in docs/recipes.md";
    EXPECT_NE(key.type, "") << key.path;
    fields.insert(key.path);
    if (key.path.starts_with("phases.N.data.")) fields.erase(key.path);  // as data.*
  }
  const std::set<std::string> with_table{"callbacks", "collate", "loss", "metrics", "transforms"};
  for (const auto& kind : cli::entry_kinds())
    for (const auto& entry : kind.entries)
      for (const auto& option : entry.options)
        // Models and optimizers share keys; some have further ones.
        if (with_table.contains(kind.key) || is_of_schedule(kind, entry, option) ||
            ((kind.key == std::string("model") || kind.key == std::string("optimizer")) &&
             !fields.contains(kind.key + '.' + cli::option_name(option))))
          fields.insert(option.path);
  for (const auto& text : key_texts(kRecipePage)) {
    EXPECT_TRUE(texts.insert(text.path).second) << text.path << " is there twice";
    EXPECT_NE(text.meaning, "") << text.path;
  }
  EXPECT_EQ(texts, fields);
  const auto options = config::field_names<RecipeOptions>();
  for (const auto& name : options) EXPECT_TRUE(fields.contains(name)) << name;
  for (const auto& name : config::field_names<PhaseOptions>())
    EXPECT_TRUE(fields.contains("phases.N." + name)) << name;
}

TEST(Pages, TheRecipePageHasTheDefaultsOfEveryEntry) {
  std::map<std::string, std::string> defaults;
  for (const auto& kind : cli::entry_kinds())
    for (const auto& entry : kind.entries)
      for (const auto& option : entry.options) defaults[option.path] = option.default_value;
  int compared = 0;
  for (const auto& text : key_texts(kRecipePage)) {
    const auto found = defaults.find(text.path);
    if (found == defaults.end()) continue;  // a key of a recipe
    ++compared;
    EXPECT_EQ(text.default_value, found->second.empty() ? "-" : found->second) << text.path;
  }
  EXPECT_GE(compared, 20);
}

TEST(Pages, EveryExampleOfAKeyIsTakenAndChangesTheRecipe) {
  const auto recipe =
      config::parse_text("model: {name: resnet9}\nphases: [{name: a}, {name: b}]\n", "recipe");
  const auto dump = [](const config::Node& root) {
    return config::to_yaml(config::to_node(config::read<RecipeOptions>(root)));
  };
  int examples = 0;
  for (const auto& key : recipe_keys()) {
    if (key.example.empty()) continue;
    ++examples;
    EXPECT_NE(dump(with_settings(recipe, key.example)), dump(recipe)) << key.example;
    EXPECT_FALSE(key.example.ends_with('=' + key.default_value)) << key.example;
  }
  EXPECT_GT(examples, 60);
}

TEST(Pages, TheSweepPageHasEveryKeyAndNoOther) {
  std::set<std::string> fields;
  for (const auto& name : config::field_names<sweep::SweepOptions>()) fields.insert(name);
  const auto insert_parts = [&](const std::string& key, const std::vector<std::string>& parts) {
    fields.erase(key);
    for (const auto& part : parts) fields.insert(key + '.' + part);
  };
  insert_parts("resources", config::field_names<sweep::Resources>());
  insert_parts("on_failure", config::field_names<sweep::OnFailure>());
  insert_parts("executor", {"type"});
  insert_parts("pruner", {"type"});
  const auto insert_options = [&](const std::string& key, const auto& registry, bool flat) {
    for (const auto& info : registry.infos())
      for (const auto& option : info.defaults.entries)
        fields.insert(key + '.' + (flat ? "" : info.name + '.') + option.key);
  };
  insert_options("executor", launch::executors::registry(), true);
  insert_options("pruner", search::pruners::registry(), true);
  insert_options("method", search::samplers::registry(), false);
  const auto keys = read_page("docs/sweeps.md").keys;
  EXPECT_EQ(std::set(keys.begin(), keys.end()), fields);
}

TEST(Pages, TheModelPageHasEveryFamily) {
  EXPECT_THAT(read_page("docs/models.md").keys, UnorderedElementsAreArray(models::names()));
}

constexpr int64_t kLineLimit = 120;     // characters
constexpr int64_t kSentenceLimit = 35;  // words

TEST(Pages, HaveShortLines) {
  for (const Page& page : pages())
    EXPECT_THAT(long_lines(io::read_text(source_folder() / page.name), kLineLimit), IsEmpty())
        << page.name;
}

TEST(Pages, HaveShortSentences) {
  for (const Page& page : pages())
    EXPECT_THAT(long_sentences(io::read_text(source_folder() / page.name), kSentenceLimit),
                IsEmpty())
        << page.name;
}

TEST(Pages, UseNoRetiredWords) {
  for (const Page& page : pages())
    EXPECT_THAT(retired_words_in(io::read_text(source_folder() / page.name)), IsEmpty())
        << page.name;
}

std::string words(int count) {
  std::string text = "one";
  for (int i = 1; i < count; ++i) text += i % 10 == 0 ? "\ntwo" : " two";
  return text;
}

TEST(FormOfAPage, LongLinesAreFoundEverywhere) {
  const std::string limit(120, 'a'), above(121, 'a');
  EXPECT_THAT(long_lines(limit + "\n| " + limit.substr(2) + '\n', 120), IsEmpty());
  EXPECT_THAT(long_lines("short\n```\n" + above + "\n```\n", 120), ElementsAre(above));
  EXPECT_THAT(long_lines("| " + above + " |\n", 120), ElementsAre("| " + above + " |"));
  const std::string two_bytes = std::string(119, 'a') + "\u00fc";
  EXPECT_THAT(long_lines(two_bytes, 120), IsEmpty());
}

TEST(FormOfAPage, LongSentencesAreFoundInParagraphsAndLists) {
  EXPECT_THAT(long_sentences(words(35) + ".\n", 35), IsEmpty());
  EXPECT_THAT(long_sentences(words(36) + ".\n", 35), ::testing::SizeIs(1));
  EXPECT_THAT(long_sentences("Short. " + words(36) + ". Short.\n", 35), ::testing::SizeIs(1));
  EXPECT_THAT(long_sentences("- " + words(20) + "\n- " + words(20) + "\n", 35), IsEmpty());
  EXPECT_THAT(long_sentences("1. " + words(36) + "\n", 35), ::testing::SizeIs(1));
  EXPECT_THAT(long_sentences(words(20) + ".** " + words(20) + ")\n", 35), IsEmpty());
  EXPECT_THAT(long_sentences(words(20) + "\n\n" + words(20) + '\n', 35), IsEmpty());
  EXPECT_THAT(long_sentences("```\n" + words(50) + "\n```\n", 35), IsEmpty());
  EXPECT_THAT(long_sentences("| a | " + std::string(200, 'b') + " |\n## c\n", 35), IsEmpty());
  EXPECT_THAT(long_sentences("`" + words(9) + "` " + words(34) + ".\n", 35), IsEmpty());
}

TEST(FormOfAPage, RetiredWordsAreFoundOutsideOfCode) {
  for (const auto& word : retired_words())
    EXPECT_THAT(retired_words_in("A text\nwith " + word + ", in it.\n"), Contains(word));
  EXPECT_THAT(retired_words_in("| a | A run is\non |\n"), ElementsAre("is on"));
  EXPECT_THAT(retired_words_in("## Room\n"), ElementsAre("room"));
  EXPECT_THAT(retired_words_in("It sees `room.h`, [it](room.md) and mushrooms.\n"), IsEmpty());
  EXPECT_THAT(retired_words_in("```\nroom\n```\nA room-like thing.\n"), IsEmpty());
}

TEST(Pages, TheIndexLeadsToEveryPage) {
  std::vector<std::string> names;
  for (const Page& page : pages()) {
    const fs::path path = page.name;
    if (path.parent_path() == "docs" && path.filename() != "index.md")
      names.push_back(path.filename());
  }
  EXPECT_THAT(read_page("docs/index.md").links, IsSupersetOf(names));
}

}  // namespace
}  // namespace tare::testing
