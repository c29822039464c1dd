// Parses the placeholders of the commands' arguments.
#include "tare/cli/placeholder.h"

#include <algorithm>
#include <cctype>

#include "tare/base/parts.h"

namespace tare::cli {
namespace {

// "cuda:N" of "cpu|cuda|cuda:N" is a form, not a word.
bool is_word(const std::string& text) {
  return std::ranges::none_of(text, [](unsigned char c) { return std::isupper(c); });
}

}  // namespace

Placeholder parse_placeholder(const std::string& text, const std::vector<std::string>& commands) {
  Placeholder result{.name = text};
  std::erase_if(result.name, [](char c) { return c == '[' || c == ']'; });
  if (result.name.ends_with("...")) {
    result.repeats = true;
    result.name.resize(result.name.size() - 3);
  }
  if (result.name == "COMMAND") {
    result.words = commands;
  } else if (result.name.find('|') != std::string::npos) {
    result.words = parts_of(result.name, '|');
    if (std::ranges::find(result.words, "COMMAND") != result.words.end())
      result.words.insert(result.words.end(), commands.begin(), commands.end());
    std::erase_if(result.words, [](const std::string& word) { return !is_word(word); });
  }
  const std::vector<std::string> files{"FILE", "RECIPE", "BUNDLE", "INPUT"};
  const auto is_file = [&](const std::string& name) {
    return std::ranges::find(files, name) != files.end();
  };
  if (!result.words.empty())
    result.completes = Completes::words;
  else if (result.name == "KEY")
    result.completes = Completes::keys;
  else if (result.name == "DIR" || result.name == "RUN")
    result.completes = Completes::folders;
  else if (std::ranges::any_of(parts_of(result.name, '|'), is_file))  // files complete folders too
    result.completes = Completes::files;
  else if (std::ranges::count(parts_of(result.name, '|'), "DIR") > 0)
    result.completes = Completes::folders;
  return result;
}

std::vector<Placeholder> parse_placeholders(const std::string& arguments,
                                            const std::vector<std::string>& commands) {
  std::vector<Placeholder> result;
  for (const auto& word : parts_of(arguments, ' ')) {
    Placeholder next = parse_placeholder(word, commands);
    if (next.name.empty() && !result.empty())  // the dots of "[key=value ...]"
      result.back().repeats = true;
    else
      result.push_back(std::move(next));
  }
  // Behind a recipe stand settings of the recipe; those of a sweep are others.
  for (size_t i = 1; i < result.size(); ++i)
    if (result[i - 1].name == "RECIPE" && result[i].name == "key=value")
      result[i].completes = Completes::settings;
  return result;
}

}  // namespace tare::cli
