// Generated texts: reviews of a few sentences, a training set without a download, equal on every
// machine.
//
// Each sentence says something good or bad about something, often by negating the opposite, or
// nothing of the kind. The class of a text follows from all of its sentences: "bad", "good", or
// "mixed" where there is some of both. Half of the texts are short, and few are long.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tare/config/field.h"
#include "tare/data/collate.h"
#include "tare/data/dataset.h"

namespace tare {

/// Describes a set of generated texts by its number of texts and a seed.
struct GeneratedTexts {
  int64_t count = 4000;  ///< texts, in [1, 1,000,000], with equal shares of the classes
  int64_t seed = 0;      ///< text i depends on (seed, i) only
  bool operator==(const GeneratedTexts&) const = default;
};
void visit_fields(auto& visit, GeneratedTexts& g) {
  visit("count", g.count, config::between(1, 1'000'000));
  visit("seed", g.seed, config::at_least(0));
}

/// Holds a text and its class.
struct LabelledText {
  std::string text{};  ///< lower case letters, spaces and full stops
  int64_t label = 0;   ///< index in text_labels()
};

/// Returns the names of the classes of generated texts, in the order of their indices.
[[nodiscard]] const std::vector<std::string>& text_labels();

/// Generates the texts. Throws ConfigError for a field out of its range.
[[nodiscard]] std::vector<LabelledText> generate_texts(const GeneratedTexts& options = {});

/// Makes a data set of generated texts: each has an input "text", int64 [length], of its bytes, and
/// a target "label", as those of text_folder(). `length`: bytes of a text that are kept; 0: all.
[[nodiscard]] DatasetPtr generated_texts(const GeneratedTexts& options = {},
                                         const Collate& collate = pad(), int64_t length = 0);

/// Writes each text as folder/<label>/<index>.txt, which text_folder() reads; returns the paths.
std::vector<std::filesystem::path> make_text_files(const std::filesystem::path& folder,
                                                   const GeneratedTexts& options = {});

}  // namespace tare
