// Looks up characters among labels.
#include "tare/model/vocabulary.h"

#include <map>

#include "tare/base/error.h"

namespace tare {
namespace {

// How many bytes the UTF-8 character has that begins with `lead`; 1 for a byte that begins none.
size_t character_bytes(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
}

}  // namespace

std::vector<int64_t> tokens_of(std::string_view text, const std::vector<std::string>& labels,
                               const std::string& where) {
  std::map<std::string_view, int64_t> places;
  for (size_t i = 0; i < labels.size(); ++i) places.emplace(labels[i], static_cast<int64_t>(i));
  std::vector<int64_t> tokens;
  for (size_t at = 0; at < text.size();) {
    const std::string_view character =
        text.substr(at, places.empty() ? 1 : character_bytes(text[at]));
    at += character.size();
    const auto found = places.find(character);
    if (!places.empty() && found == places.end())
      throw ConfigError(where, "'" + printable(character) +
                                   "' is not in the vocabulary of the model; its characters are: " +
                                   printable(text_of(
                                                 [&] {
                                                   std::vector<int64_t> all;
                                                   for (size_t i = 0; i < labels.size(); ++i)
                                                     all.push_back(static_cast<int64_t>(i));
                                                   return all;
                                                 }(),
                                                 labels),
                                             300));
    tokens.push_back(places.empty() ? static_cast<unsigned char>(character.front())
                                    : found->second);
  }
  return tokens;
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
