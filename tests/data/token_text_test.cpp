// Texts as windows of tokens.
#include "tare/data/token_text.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/npy_file.h"
#include "support/temp_dir.h"
#include "tare/base/error.h"
#include "tare/base/io.h"
#include "tare/data/datasets.h"
#include "tare/data/token_merger.h"

namespace tare {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<int64_t> values(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(at::kLong).contiguous();
  const int64_t* data = flat.const_data_ptr<int64_t>();
  return {data, data + flat.numel()};
}

Batch windows(const DatasetPtr& data, std::vector<int64_t> indices, uint64_t seed = 0,
              bool training = false) {
  return data->get({.indices = indices, .seed = seed, .training = training});
}

TEST(TokenText, CharactersAreNumberedByTheirCodePoints) {
  const TokenText text = character_tokens(
      "b\xc3\xa4"
      "ab\xe2\x82\xac\n",
      "t");
  EXPECT_THAT(text.vocabulary, ElementsAre("\n", "a", "b", "\xc3\xa4", "\xe2\x82\xac"));
  EXPECT_THAT(values(text.tokens), ElementsAre(2, 3, 1, 2, 4, 0));
  EXPECT_EQ(text.tokens.scalar_type(), at::kByte);
  EXPECT_TRUE(byte_tokens("\xff"
                          "a")
                  .vocabulary.empty());
  EXPECT_THAT(values(byte_tokens("\xff"
                                 "a")
                         .tokens),
              ElementsAre(255, 97));
}

TEST(TokenText, ManyCharactersTakeFourBytesEach) {
  std::string all;
  for (int i = 0; i < 300; ++i) {  // U+0100 and those behind it
    const int code = 0x100 + i;
    all += static_cast<char>(0xc0 | (code >> 6));
    all += static_cast<char>(0x80 | (code & 0x3f));
  }
  const TokenText text = character_tokens(all, "t");
  EXPECT_EQ(text.vocabulary.size(), 300U);
  EXPECT_EQ(text.tokens.scalar_type(), at::kInt);
  const auto data = token_windows(text, {.context = 299});
  EXPECT_EQ(values(windows(data, {0}).target()).back(), 299);
}

TEST(TokenText, WhatIsNotUtf8IsRefusedWithItsPlace) {
  for (const char* wrong :
       {"ab\x80", "ab\xc3", "ab\xc0\xaf", "ab\xed\xa0\x80", "ab\xf5\x80\x80\x80", "ab\xe0\x80\x80",
        "ab\xf0\x80\x80\x80", "ab\xf4\x90\x80\x80"})
    EXPECT_THAT([&] { (void)character_tokens(wrong, "t.txt"); },
                ThrowsMessage<FormatError>(HasSubstr("byte 2")))
        << wrong;
}

TEST(TokenText, TheTargetIsOneTokenAhead) {
  const auto data = token_windows(byte_tokens("abcdefghijk"), {.context = 3});
  EXPECT_EQ(data->size(), 3) << "what is left is no sample";
  const Batch batch = windows(data, {2, 0});
  EXPECT_THAT(values(batch.input()), ElementsAre('g', 'h', 'i', 'a', 'b', 'c'));
  EXPECT_THAT(values(batch.target()), ElementsAre('h', 'i', 'j', 'b', 'c', 'd'));
  EXPECT_EQ(batch.input().sizes(), at::IntArrayRef({2, 3}));
  EXPECT_EQ(batch.input().scalar_type(), at::kLong);
  EXPECT_EQ(token_windows(byte_tokens("abcdefghij"), {.context = 3})->size(), 3);
  EXPECT_EQ(token_windows(byte_tokens("abcdefghi"), {.context = 3})->size(), 2);
}

TEST(TokenText, WindowsOfATrainingAreMovedInEachEpoch) {
  const auto data =
      token_windows(byte_tokens("0123456789abcdefghij"), {.context = 4, .move = true});
  EXPECT_EQ(data->size(), 4);
  std::set<int64_t> starts;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const auto first = values(windows(data, {0, 3}, seed, true).input());
    EXPECT_EQ(values(windows(data, {0, 3}, seed, true).input()), first) << "the same seed";
    starts.insert(first[0] - '0');
  }
  EXPECT_THAT(starts, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(values(windows(data, {0}, 5, false).input())[0], '0') << "validations are not moved";
}

TEST(TokenText, SplitsDoNotOverlapAndSizesAreChecked) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += static_cast<char>(i);
  const Splits splits = split_text(byte_tokens(text), 4, {.train = 0.6, .valid = 0.3, .test = 2});
  EXPECT_EQ(splits.train->size(), (60 - 1 - 3) / 4);
  EXPECT_EQ(splits.valid->size(), (30 - 1) / 4);
  EXPECT_EQ(splits.test->size(), 2);
  EXPECT_EQ(values(windows(splits.valid, {0}).input())[0], 60);
  EXPECT_EQ(values(windows(splits.test, {0}).input())[0], 90);
  const auto refused = [&](const SplitSizes& sizes, int64_t context) {
    EXPECT_THROW((void)split_text(byte_tokens(text), context, sizes), ConfigError);
  };
  refused({.train = 0.9, .valid = 0.2}, 4);
  refused({.train = -1, .valid = 0.2}, 4);
  refused({.train = 1.5, .valid = 0.2}, 4);
  refused({.train = 0.5, .valid = 0.01}, 4);
  refused({.train = 1, .valid = 0}, 100);
  EXPECT_EQ(split_text(byte_tokens(text), 4, {.train = 1, .valid = 0}).valid, nullptr);
}

std::string joined(const std::vector<std::string_view>& pieces) {
  std::string all;
  for (const std::string_view piece : pieces) all += std::string(piece) + '|';
  return all;
}

TEST(Pieces, EndAtWordsSignsAndWhiteSpace) {
  EXPECT_EQ(joined(pieces_of("To be, or not")), "To| be|,| or| not|");
  EXPECT_EQ(joined(pieces_of("a  b\n\nc \n")), "a| | b|\n\n|c| \n|");
  EXPECT_EQ(joined(pieces_of("x1+=2;")), "x1|+=|2|;|");
  EXPECT_EQ(joined(pieces_of("\xc3\xa4\xe2\x82\xac!")), "\xc3\xa4\xe2\x82\xac|!|");
  EXPECT_EQ(joined(pieces_of("")), "");
  const std::string longest(1000, 'y');
  std::string again;
  for (const std::string_view piece : pieces_of(longest)) {
    EXPECT_LE(piece.size(), 64U);
    again += piece;
  }
  EXPECT_EQ(again, longest);
}

/// Learns as learnt_vocabulary() does, and counts all pairs again for each join.
std::vector<std::string> slowly_learnt(const std::string& text, size_t size) {
  std::vector<std::vector<std::string>> pieces;
  std::set<std::string> characters;
  for (const std::string_view piece : pieces_of(text)) {
    pieces.emplace_back();
    for (const char c : piece) pieces.back().push_back(*characters.emplace(1, c).first);
  }
  std::vector<std::string> vocabulary(characters.begin(), characters.end());
  const auto number = [&](const std::string& token) {
    return std::ranges::find(vocabulary, token) - vocabulary.begin();
  };
  while (vocabulary.size() < size) {
    std::map<std::pair<std::ptrdiff_t, std::ptrdiff_t>, int> counts;
    for (const auto& piece : pieces)
      for (size_t i = 0; i + 1 < piece.size(); ++i)
        ++counts[{number(piece[i]), number(piece[i + 1])}];
    const auto best =
        std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; });
    if (best == counts.end() || best->second < 2) break;
    const std::string left = vocabulary[static_cast<size_t>(best->first.first)],
                      right = vocabulary[static_cast<size_t>(best->first.second)];
    if (std::ranges::find(vocabulary, left + right) == vocabulary.end())
      vocabulary.push_back(left + right);
    for (auto& piece : pieces)
      for (size_t i = 0; i + 1 < piece.size(); ++i)
        if (piece[i] == left && piece[i + 1] == right) {
          piece[i] += right;
          piece.erase(piece.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        }
  }
  return vocabulary;
}

TEST(LearntVocabulary, IsThatOfCountingAllPairsAgainForEachJoin) {
  std::mt19937 random(3);
  for (const char* letters : {"ab ", "aab,", "abcdefgh   "}) {
    std::string text;
    for (int i = 0; i < 800; ++i) text += letters[random() % std::strlen(letters)];
    EXPECT_EQ(learnt_vocabulary(text, 60), slowly_learnt(text, 60)) << letters;
  }
}

// The example of section 3.2 of Sennrich et al. 2016, without their end of words.
TEST(LearntVocabulary, JoinsTheMostFrequentPairs) {
  std::string text;
  for (const auto& [word, count] : {std::pair("low", 5), {"lowest", 2}, {"newer", 6}, {"wider", 3}})
    for (int i = 0; i < count; ++i) text += std::string(word) + '\n';
  const auto vocabulary = learnt_vocabulary(text, 15);
  EXPECT_THAT(std::vector(vocabulary.begin(), vocabulary.begin() + 11),
              ElementsAre("\n", "d", "e", "i", "l", "n", "o", "r", "s", "t", "w"));
  // "er" 9 times; then "lo", "low" and "ne" or what is as frequent and has lower numbers.
  EXPECT_EQ(vocabulary.size(), 15U);
  EXPECT_EQ(vocabulary[11], "er");
  EXPECT_EQ(vocabulary[12], "lo");
  EXPECT_EQ(vocabulary[13], "low");
  EXPECT_EQ(vocabulary, learnt_vocabulary(text, 15));
  EXPECT_THAT(learnt_vocabulary("abc", 100), ElementsAre("a", "b", "c"))
      << "no pair is there twice";
  EXPECT_EQ(learnt_vocabulary("abcabc", 2).size(), 3U) << "every character has a token";
}

TEST(TokenMerger, FindsTheTokensThatTheTextWasLearntWith) {
  std::string text;
  for (int i = 0; i < 50; ++i)
    text += "the cat and the " + std::string(i % 3 == 0 ? "hat" : "\xc3\xa4pfel") + ", then\n";
  const TokenText learnt = bpe_tokens(text, 60, "t");
  EXPECT_LE(learnt.vocabulary.size(), 60U);
  EXPECT_LT(learnt.tokens.numel(), static_cast<int64_t>(text.size()) / 2);
  std::string again;
  for (const int64_t token : values(learnt.tokens))
    again += learnt.vocabulary[static_cast<size_t>(token)];
  EXPECT_EQ(again, text);
  const TokenMerger merger(learnt.vocabulary);
  EXPECT_TRUE(merger.merges());
  std::vector<int64_t> tokens;
  const auto refuse = [](std::string_view character) {
    throw ConfigError("test", std::string(character));
  };
  for (const std::string_view piece : pieces_of(text)) merger.append(piece, tokens, refuse);
  EXPECT_EQ(tokens, values(learnt.tokens));
  EXPECT_THAT([&] { merger.append("thz", tokens, refuse); },
              ThrowsMessage<ConfigError>(HasSubstr("z")));
  EXPECT_FALSE(TokenMerger({"a", "\xc3\xa4"}).merges());
}

TEST(TokenText, OfJoinedCharactersIsADataSetByName) {
  const testing::TempDir folder;
  std::string text;
  for (int i = 0; i < 100; ++i) text += "to be or not to be\n";
  io::write_atomically(folder / "t.txt", text);
  DataOptions options{
      .name = "text", .file = (folder / "t.txt").string(), .context = 10, .tokenizer = "bpe"};
  const auto named = datasets::make(options);
  EXPECT_THAT(named.splits.train->labels(), ::testing::Contains(" be"));
  EXPECT_THAT(named.description, HasSubstr("tokens of"));
  options.vocabulary = 12;
  EXPECT_EQ(datasets::make(options).splits.train->labels().size(), 12U);
  options.vocabulary = 3;
  EXPECT_THAT([&] { (void)datasets::make(options); },
              ThrowsMessage<ConfigError>(HasSubstr("is less than the characters of the file")));
  io::write_atomically(folder / "t.txt", "no text \xff" + text);
  EXPECT_THAT([&] { (void)datasets::make(options); },
              ThrowsMessage<FormatError>(HasSubstr("byte 8")));
}

TEST(TokenText, IsADataSetByName) {
  const testing::TempDir folder;
  io::write_atomically(folder / "t.txt", std::string(200, 'a') + std::string(50, 'b'));
  const DataOptions options{.name = "text", .file = (folder / "t.txt").string(), .context = 10};
  const auto named = datasets::make(options);
  EXPECT_THAT(named.splits.train->labels(), ElementsAre("a", "b"));
  EXPECT_EQ(named.splits.train->size(), (200 - 1 - 9) / 10);
  EXPECT_THAT(named.description, HasSubstr("250 characters of"));
  const auto refused = [&](const std::function<void(DataOptions&)>& change, const char* word) {
    DataOptions wrong = options;
    change(wrong);
    EXPECT_THAT([&] { (void)datasets::make(wrong); }, ThrowsMessage<ConfigError>(HasSubstr(word)));
  };
  refused([](DataOptions& o) { o.file.clear(); }, "file");
  refused([](DataOptions& o) { o.tokenizer = "byte"; }, "did you mean \"bytes\"");
  refused([](DataOptions& o) { o.vocabulary = 20; }, "is decided by the tokenizer characters");
  refused(
      [](DataOptions& o) {
        o.tokenizer = "bpe";
        o.vocabulary = 1;
      },
      "is too small");
  refused([](DataOptions& o) { o.context = 250; }, "context");
  refused([](DataOptions& o) { o.folds = 3; }, "folds");
  refused([](DataOptions& o) { o.size = 3; }, "size");
  refused([](DataOptions& o) { o.train = 0; }, "train");
}

TEST(TokenText, OfAnArrayHasItsTokens) {
  const testing::TempDir folder;
  std::vector<int64_t> numbers(90);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(i * 37 % 1000);
  const at::Tensor array = at::empty({90}, at::kLong);
  std::ranges::copy(numbers, array.mutable_data_ptr<int64_t>());
  testing::write_npy(folder / "tokens.npy", array.remainder(256).to(at::kByte));
  EXPECT_EQ(stored_tokens(folder / "tokens.npy").tokens.scalar_type(), at::kByte);
  testing::write_npy(folder / "tokens.npy", array);
  EXPECT_EQ(values(stored_tokens(folder / "tokens.npy").tokens), numbers);
  DataOptions options{.name = "text", .file = (folder / "tokens.npy").string(), .context = 4};
  const auto named = datasets::make(options);
  EXPECT_THAT(named.description, HasSubstr("90 tokens of"));
  EXPECT_TRUE(named.splits.train->labels().empty());
  EXPECT_EQ(values(windows(named.splits.train, {0}).input()),
            std::vector<int64_t>(numbers.begin(), numbers.begin() + 4));
  options.tokenizer = "bytes";
  EXPECT_THAT([&] { (void)datasets::make(options); },
              ThrowsMessage<ConfigError>(HasSubstr("an array has tokens already")));
  options.tokenizer.clear();
  const auto refused = [&](const at::Tensor& other, const char* why) {
    testing::write_npy(folder / "tokens.npy", other);
    EXPECT_THAT([&] { (void)datasets::make(options); }, ThrowsMessage<FormatError>(HasSubstr(why)));
  };
  refused(array.to(at::kFloat), "whole numbers in one dimension");
  refused(array.reshape({9, 10}), "whole numbers in one dimension");
  refused(array.sub(1), "has the token -1");
  refused(array.narrow(0, 0, 0), "is empty");
}

TEST(TokenText, AnEmptyFileIsNamed) {
  const testing::TempDir folder;
  io::write_atomically(folder / "empty.txt", "");
  DataOptions options{.name = "text", .file = (folder / "empty.txt").string()};
  for (const char* tokenizer : {"characters", "bytes", "bpe"}) {
    options.tokenizer = tokenizer;
    EXPECT_THAT([&] { (void)datasets::make(options); },
                ThrowsMessage<FormatError>(HasSubstr("empty.txt: text: is empty: give a file")));
  }
  io::write_atomically(folder / "empty.txt", "a");
  EXPECT_THAT([&] { (void)datasets::make(options); },
              ThrowsMessage<ConfigError>(HasSubstr("leaves no training split of 1 token")));
}

}  // namespace
}  // namespace tare
