// Looks up characters among labels.
#include "tare/model/vocabulary.h"

#include <algorithm>
#include <map>

#include "tare/base/error.h"
#include "tare/base/utf8.h"

namespace tare {

std::vector<int64_t> tokens_of(std::string_view text, const std::vector<std::string>& labels,
                               const RefuseCharacter& refuse) {
  std::map<std::string_view, int64_t> places;
  for (size_t i = 0; i < labels.size(); ++i) places.emplace(labels[i], static_cast<int64_t>(i));
  std::vector<int64_t> tokens;
  while (!text.empty()) {
    const size_t bytes = places.empty() ? 1 : std::max<size_t>(1, utf8_length(text));
    const std::string_view character = text.substr(0, bytes);
    text.remove_prefix(bytes);
    const auto found = places.find(character);
    if (!places.empty() && found == places.end()) refuse(character);
    tokens.push_back(places.empty() ? static_cast<unsigned char>(character.front())
                                    : found->second);
  }
  return tokens;
}

std::vector<int64_t> tokens_of(std::string_view text, const std::vector<std::string>& labels,
                               const std::string& where) {
  return tokens_of(text, labels, [&](std::string_view character) {
    std::string all;
    for (const std::string& label : labels) all += label;
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
