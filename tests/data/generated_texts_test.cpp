// Generated texts: what they are made of, that they are the same everywhere, and as files.
#include "tare/data/generated_texts.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "support/outcome.h"
#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/data/datasets.h"
#include "tare/data/text_folder.h"

namespace tare::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

size_t count_of_words(const std::string& text, const std::vector<std::string>& words) {
  size_t count = 0;
  for (const std::string& word : words)
    for (size_t at = 0; (at = text.find(word, at)) != text.npos; at += word.size()) ++count;
  return count;
}

/// Counts the sentences of a text that praise, or that complain.
size_t opinions(const std::string& text, bool praise) {
  const std::vector<std::string> good{"good.",  "lovely.",   "fresh.",
                                      "great.", "pleasant.", "perfect."},
      bad{"bad.", "awful.", "stale.", "dirty.", "poor.", "dreadful."};
  size_t count = 0;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('.', begin) + 1;
    const std::string sentence = text.substr(begin, end - begin);
    const bool negated = sentence.find(" not ") != sentence.npos;
    count += count_of_words(sentence, praise != negated ? good : bad);
    begin = end;
  }
  return count;
}

TEST(GeneratedTexts, HaveTheOpinionsOfTheirClass) {
  std::map<int64_t, int64_t> counts;
  size_t shortest = SIZE_MAX, longest = 0, negated = 0;
  for (const auto& [text, label] : generate_texts({.count = 600})) {
    ++counts[label];
    EXPECT_EQ(opinions(text, true) > 0, label != 0) << text;
    EXPECT_EQ(opinions(text, false) > 0, label != 1) << text;
    shortest = std::min(shortest, text.size());
    longest = std::max(longest, text.size());
    negated += text.find(" not ") != text.npos ? 1 : 0;
  }
  EXPECT_EQ(counts, (std::map<int64_t, int64_t>{{0, 200}, {1, 200}, {2, 200}}));
  EXPECT_THAT(text_labels(), ElementsAre("bad", "good", "mixed"));
  EXPECT_LT(shortest, 25U);
  EXPECT_GT(longest, 200U);
  EXPECT_GT(negated, 150U);
}

// What a seed gives is written into figures and recipes, so it may not change.
TEST(GeneratedTexts, AreTheSameForTheSameSeed) {
  const auto texts = generate_texts({.count = 40}), more = generate_texts({.count = 50});
  std::set<std::string> different;
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(texts[i].text, more[i].text);
    different.insert(texts[i].text);
  }
  EXPECT_GT(different.size(), 38U);
  EXPECT_NE(generate_texts({.count = 1, .seed = 1})[0].text, texts[0].text);
  EXPECT_THROW((void)generate_texts({.count = 0}), ConfigError);
}

TEST(GeneratedTexts, AreTheSameAsFilesOfAFolder) {
  const TempDir folder;
  const auto files = make_text_files(folder.path(), {.count = 9, .seed = 2});
  ASSERT_EQ(files.size(), 9U);
  const DatasetPtr read = text_folder(folder.path()),
                   made = generated_texts({.count = 9, .seed = 2});
  EXPECT_EQ(read->labels(), made->labels());
  EXPECT_EQ(io::read_text(folder / "good/4.txt"), generate_texts({.count = 9, .seed = 2})[4].text);
  const std::vector<int64_t> by_class{0, 3, 6, 1, 4, 7, 2, 5, 8};
  const Batch one = get_all(*read), other = made->get({.indices = by_class});
  for (size_t i = 0; i < one.tensors().size(); ++i)
    EXPECT_TRUE(at::equal(one.tensors()[i], other.tensors()[i])) << i;
}

TEST(GeneratedTexts, AreADataSetOfRecipes) {
  DataOptions options{.name = "generated_texts", .count = 90, .length = 30};
  options.collate = config::Choice{.name = "pad"};
  options.collate->options.set("with", config::Node::string("mask"));
  const datasets::Named named = datasets::make(options);
  EXPECT_TRUE(named.generated);
  EXPECT_THAT(named.description, HasSubstr("90 generated texts, seed 0"));
  EXPECT_EQ(named.splits.train->size(), 72);
  EXPECT_EQ(named.splits.train->text_length(), 30);
  EXPECT_THAT(named.splits.train->sample_shape(), ElementsAre(30));
  EXPECT_EQ(named.splits.train->first_sample().input("mask").scalar_type(), at::kBool);
  options.size = 8;
  EXPECT_THAT(outcome_of([&] { datasets::check(options); }), HasSubstr("size is not taken"));
}

}  // namespace
}  // namespace tare::testing
