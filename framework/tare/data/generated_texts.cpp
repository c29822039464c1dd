// Draws reviews from lists of words.
#include "tare/data/generated_texts.h"

#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/io.h"
#include "tare/data/datasets.h"
#include "tare/data/text_bytes.h"
#include "tare/transform/random.h"

namespace tare {
namespace {

constexpr int64_t kBadText = 0, kGoodText = 1, kMixedText = 2;  // labels

constexpr std::array<std::string_view, 8> kSubjects{
    "the soup", "the food", "the view", "the staff", "the bed", "the music", "our table", "it all"};
constexpr std::array<std::string_view, 3> kVerbs{" was ", " seemed ", " felt "};
constexpr std::array<std::string_view, 3> kDegrees{"", "very ", "really "};
constexpr std::array<std::string_view, 6> kGood{"good",  "lovely",   "fresh",
                                                "great", "pleasant", "perfect"};
constexpr std::array<std::string_view, 6> kBad{"bad",   "awful", "stale",
                                               "dirty", "poor",  "dreadful"};
constexpr std::array<std::string_view, 5> kNeutral{"we came on a monday.", "it rained all day.",
                                                   "there were four of us.",
                                                   "we stayed two nights.", "my sister drove."};

template <size_t N>
std::string_view one_of(const std::array<std::string_view, N>& words, RandomBits& bits) {
  return words[bits.below(N)];
}

/// Returns a sentence that praises or complains; every third negates a word of the other kind.
std::string opinion(bool praises, RandomBits& bits) {
  const bool negated = bits.below(3) == 0;
  std::string text(one_of(kSubjects, bits));
  text += one_of(kVerbs, bits);
  if (negated) text += "not ";
  text += one_of(kDegrees, bits);
  text += one_of(praises != negated ? kGood : kBad, bits);
  return text + '.';
}

/// Returns one to three sentences in three of four texts, and up to ten in the others.
size_t length_of(RandomBits& bits) {
  const uint64_t few = 1 + bits.below(3);
  return bits.below(4) == 0 ? few + bits.below(8) : few;
}

// The first sentences say what the class needs, and all of them are shuffled.
std::string review(int64_t label, RandomBits& bits) {
  std::vector<std::string> sentences;
  if (label != kBadText) sentences.push_back(opinion(true, bits));
  if (label != kGoodText) sentences.push_back(opinion(false, bits));
  const size_t length = std::max(sentences.size(), length_of(bits));
  while (sentences.size() < length) {
    const bool praises = label == kMixedText ? bits.below(2) == 0 : label == kGoodText;
    sentences.push_back(bits.below(3) == 0 ? std::string(one_of(kNeutral, bits))
                                           : opinion(praises, bits));
  }
  std::string text;
  for (const int64_t i : permutation(std::ssize(sentences), bits.next()))
    text += (text.empty() ? "" : " ") + sentences[static_cast<size_t>(i)];
  return text;
}

}  // namespace

const std::vector<std::string>& text_labels() {
  static const std::vector<std::string> labels{"bad", "good", "mixed"};
  return labels;
}

std::vector<LabelledText> generate_texts(const GeneratedTexts& options) {
  config::validate(options, "data.generated_texts");
  std::vector<LabelledText> texts;
  texts.reserve(static_cast<size_t>(options.count));
  const auto classes = std::ssize(text_labels());
  for (int64_t i = 0; i < options.count; ++i) {
    RandomBits bits(derive_seed(static_cast<uint64_t>(options.seed), static_cast<uint64_t>(i)));
    texts.push_back({.text = review(i % classes, bits), .label = i % classes});
  }
  return texts;
}

DatasetPtr generated_texts(const GeneratedTexts& options, const Collate& collate, int64_t length) {
  std::vector<Batch> samples;
  for (const LabelledText& one : generate_texts(options))
    samples.push_back({{{"text", bytes_of(one.text, length)}},
                       {{"label", at::scalar_tensor(one.label, at::kLong)}}});
  return sample_dataset(std::move(samples), collate, text_labels(), {}, length);
}

std::vector<std::filesystem::path> make_text_files(const std::filesystem::path& folder,
                                                   const GeneratedTexts& options) {
  std::vector<std::filesystem::path> paths;
  for (const LabelledText& one : generate_texts(options)) {
    const auto of_label = folder / text_labels()[static_cast<size_t>(one.label)];
    io::make_directories(of_label);
    const auto name = std::to_string(paths.size()) + ".txt";
    io::write_atomically(paths.emplace_back(of_label / name), one.text);
  }
  return paths;
}

}  // namespace tare

namespace tare::datasets {
namespace {

Found drawn_texts(const DataOptions& o, bool) {
  const GeneratedTexts g{.count = o.count > 0 ? o.count : GeneratedTexts{}.count, .seed = o.seed};
  return {.description = format_count(g.count) + " generated texts, seed " + std::to_string(g.seed),
          .data = generated_texts(g, collate_of_texts(o), o.length),
          .generated = true};
}

}  // namespace

void add_generated_texts(Registry& all) {
  all.add("generated_texts", "draws reviews of a few sentences that are bad, good or mixed", [] {
    return Kind{.fields = {"length", "collate"}, .make = drawn_texts, .images = false};
  });
}

}  // namespace tare::datasets
