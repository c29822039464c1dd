// Looks up characters among labels.
#include "tare/model/vocabulary.h"

#include "tare/base/error.h"
#include "tare/base/utf8.h"
#include "tare/data/token_merger.h"

namespace tare {

std::vector<int64_t> tokens_of(std::string_view text, const std::vector<std::string>& labels,
                               const RefuseCharacter& refuse) {
  std::vector<int64_t> tokens;
  if (labels.empty()) {
    for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
    return tokens;
  }
  const TokenMerger merger(labels);
  for (const std::string_view piece : pieces_of(text)) merger.append(piece, tokens, refuse);
  return tokens;
}

std::vector<int64_t> tokens_of(std::string_view text, const std::vector<std::string>& labels,
                               const std::string& where) {
  return tokens_of(text, labels, [&](std::string_view character) {
    std::string all;
    for (const std::string& label : labels)
      if (utf8_length(label) == label.size()) all += label;  // and no token of several characters
    throw ConfigError(where, "'" + printable(character) +
                                 "' is not in the vocabulary of the model; its characters are: " +
                                 printable(all, 300));
  });
}

std::string text_of(const std::vector<int64_t>& tokens, const std::vector<std::string>& labels) {
  std::string text;
  for (const int64_t token : tokens) {
    if (token >= 0 && token < std::ssize(labels))
      text += labels[static_cast<size_t>(token)];
    else
      text += labels.empty() && token >= 0 && token < 256 ? static_cast<char>(token) : '?';
  }
  return text;
}

}  // namespace tare
