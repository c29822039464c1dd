// Reads the tables of docs/recipes.md.
#include <sstream>

#include "tare/recipe/recipe_keys.h"

namespace tare {
namespace {

std::string trimmed(const std::string& text) {
  const size_t from = text.find_first_not_of(' ');
  if (from == std::string::npos) return "";
  return text.substr(from, text.find_last_not_of(' ') - from + 1);
}

/// Returns the text without backticks, and links without their targets.
std::string plain(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '`' || text[i] == '[') {
      // A list such as [layer1, layer2] stands between backticks and keeps its brackets.
      if (text[i] == '`') {
        const size_t end = text.find('`', i + 1);
        if (end == std::string::npos) break;
        result += text.substr(i + 1, end - i - 1);
        i = end;
        continue;
      }
      const size_t middle = text.find("](", i), end = text.find(')', i);
      if (middle == std::string::npos || end == std::string::npos || middle > end) {
        result += text[i];
        continue;
      }
      result += plain(text.substr(i + 1, middle - i - 1));
      i = end;
      continue;
    }
    result += text[i];
  }
  return result;
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream stream(line.substr(1));
  for (std::string cell; std::getline(stream, cell, '|');) cells.push_back(trimmed(cell));
  return cells;
}

std::vector<std::string> names_in(const std::string& cell) {
  std::vector<std::string> names;
  std::istringstream stream(cell);
  std::string part;
  for (int i = 0; std::getline(stream, part, '`'); ++i)
    if (i % 2 == 1) names.push_back(part);
  return names;
}

}  // namespace

std::vector<KeyText> key_texts(std::string_view page) {
  std::vector<KeyText> texts;
  std::istringstream lines{std::string(page)};
  bool in_table = false, of_phase = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("Each phase:")) of_phase = true;
    if (line.starts_with("## ")) of_phase = false;
    if (line.starts_with("| key |")) in_table = true;
    if (!line.starts_with('|')) in_table = false;
    if (!in_table || !line.starts_with("| `")) continue;
    const auto cells = cells_of(line);
    if (cells.size() < 3) continue;
    for (const auto& name : names_in(cells[0]))
      texts.push_back({(of_phase ? "phases.N." : "") + name, plain(cells[1]), plain(cells[2])});
  }
  return texts;
}

}  // namespace tare
