// Byte-pair encoding on characters: tokens of several characters that occur together often.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tare {

/// Cuts a text into the pieces within which characters become one token: words and numbers, each
/// with one blank in front of it if there is one, runs of other visible characters, runs of white
/// space. A piece has at most 64 characters. The pieces together are the text, which is UTF-8.
[[nodiscard]] std::vector<std::string_view> pieces_of(std::string_view text);

/// Learns a vocabulary by byte-pair encoding (Sennrich, Haddow and Birch 2016, "Neural Machine
/// Translation of Rare Words with Subword Units", algorithm 1): first the characters of the text in
/// the order of their code points, then, until there are `size` tokens, the join of the two tokens
/// that stand beside each other most often within pieces. Ends early where no two occur twice. Of
/// equally frequent pairs the one with the lower numbers is taken, so that equal texts give equal
/// vocabularies. A text with more characters than `size` gives all of them. `text`: UTF-8.
[[nodiscard]] std::vector<std::string> learnt_vocabulary(std::string_view text, size_t size);

/// Finds the tokens of texts in a vocabulary: joins the two neighbours whose join is the token of
/// the lowest number, until no join is a token. Refers to the vocabulary, which must outlive it.
class TokenMerger {
 public:
  /// Takes texts by token, all different.
  explicit TokenMerger(const std::vector<std::string>& vocabulary);
  /// Whether a token has several characters.
  [[nodiscard]] bool merges() const { return merges_; }
  /// Adds the tokens of a piece of pieces_of(). Calls `refuse`, which throws, with a character that
  /// is not in the vocabulary.
  void append(std::string_view piece, std::vector<int64_t>& tokens,
              const std::function<void(std::string_view character)>& refuse) const;

 private:
  std::unordered_map<std::string_view, int64_t> numbers_;
  bool merges_ = false;
};

}  // namespace tare
