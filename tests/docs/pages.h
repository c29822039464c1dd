// Reads the parts of a documentation page that can be checked: its code blocks, code spans, links
// and tables, and the form of its text.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tare/base/io.h"

namespace tare::testing {

struct Block {
  std::string language{};
  std::string text{};
};

struct Page {
  std::string name{};                ///< relative to the source folder
  std::vector<Block> blocks{};       ///< between ``` lines
  std::vector<std::string> spans{};  ///< between single backticks
  std::vector<std::string> links{};  ///< targets of [text](target)
  std::vector<std::string> keys{};   ///< code spans in the first column of tables
};

inline std::filesystem::path source_folder() { return std::getenv("TARE_SOURCE_DIR"); }

inline std::vector<std::string> matches(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator i(text.begin(), text.end(), regex), end; i != end; ++i)
    found.push_back((*i)[1]);
  return found;
}

inline Page read_page(const std::string& name) {
  Page page{.name = name};
  std::istringstream lines(io::read_text(source_folder() / name));
  std::string prose;
  bool in_block = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      in_block = !in_block;
      if (in_block) page.blocks.push_back({.language = line.substr(3)});
    } else if (in_block) {
      page.blocks.back().text += line + '\n';
    } else {
      prose += line + ' ';
      if (line.starts_with("| `")) {
        for (auto& key : matches(line.substr(0, line.find('|', 1)), "`([^`]+)`"))
          page.keys.push_back(key);
      }
    }
  }
  page.spans = matches(prose, "`([^`]+)`");
  page.links = matches(prose, "\\]\\(([^)#]+)[^)]*\\)");
  return page;
}

/// The lines of a text with more than `limit` characters; bytes that continue one do not count.
inline std::vector<std::string> long_lines(const std::string& text, int64_t limit) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto characters = std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; });
    if (characters > limit) found.push_back(line);
  }
  return found;
}

/// A text with X in place of each code span, and links without their targets.
inline std::string without_code(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_code = text[i] == '`', is_target = text.compare(i, 2, "](") == 0;
    const size_t end = is_code ? text.find('`', i + 1) : is_target ? text.find(')', i) : i;
    if (end == std::string::npos) return result + text.substr(i);
    result += is_code ? 'X' : is_target ? ' ' : text[i];
    i = end;
  }
  return result;
}

/// The text of a page outside of its code blocks.
inline std::string without_blocks(const std::string& page) {
  std::string result;
  std::istringstream lines(page);
  bool in_block = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) in_block = !in_block;
    result += in_block || line.starts_with("```") ? "\n" : line + '\n';
  }
  return result;
}

inline bool begins_item(const std::string& line) {
  const size_t digits = line.find_first_not_of("0123456789");
  return line.starts_with("- ") || line.starts_with("* ") ||
         (digits != 0 && digits != std::string::npos && line.compare(digits, 2, ". ") == 0);
}

/// Paragraphs and list items, each in one line; neither headings nor tables.
inline std::vector<std::string> paragraphs(const std::string& page) {
  std::vector<std::string> all(1);
  std::istringstream lines(without_blocks(page));
  for (std::string line; std::getline(lines, line);) {
    line.erase(0, std::min(line.find_first_not_of(' '), line.size()));
    if (line.empty() || line.starts_with('|') || line.starts_with('#')) {
      all.emplace_back();
      continue;
    }
    if (begins_item(line)) all.emplace_back();
    all.back() += line + ' ';
  }
  std::erase(all, "");
  return all;
}

/// The sentences of a page's paragraphs and list items with more than `limit` words.
inline std::vector<std::string> long_sentences(const std::string& page, int64_t limit) {
  std::vector<std::string> found;
  for (const auto& paragraph : paragraphs(page)) {
    std::istringstream words(without_code(paragraph));
    std::string sentence;
    int64_t count = 0;
    const auto end_sentence = [&] {
      if (count > limit) found.push_back(sentence);
      sentence.clear();
      count = 0;
    };
    for (std::string word; words >> word;) {
      sentence += (sentence.empty() ? "" : " ") + word;
      if (std::ranges::any_of(word, [](unsigned char c) { return std::isalnum(c) || c >= 0x80; }))
        ++count;
      const size_t last = word.find_last_not_of("*_\")]");
      if (last != std::string::npos && std::string(".!?").find(word[last]) != std::string::npos)
        end_sentence();
    }
    end_sentence();
  }
  return found;
}

/// Words of a private dialect, for which docs/glossary.md and the field have better ones.
inline const std::vector<std::string>& retired_words() {
  static const std::vector<std::string> words{
      "told",        "tell",      "tells",      "cannot tell",  "cannot be told", "goes on",
      "go on",       "is on",     "are on",     "said",         "room",           "rooms",
      "proven",      "unproven",  "verdict",    "surroundings", "of furcate's",   "of slurm's",
      "left behind", "leave out", "leaves out", "left out",     "leaving out",    "alike",
      "beat",        "tend",      "admit",      "dismiss",      "trainee",        "cannottell",
      "fitsubject",  "standin",   "mem-trace",  "memory-trace"};
  return words;
}

/// Those that stand in a page outside of code, tables and headings included.
inline std::vector<std::string> retired_words_in(const std::string& page) {
  std::string text = " ";
  for (const char c : without_code(without_blocks(page))) {
    const bool is_part = std::isalnum(static_cast<unsigned char>(c)) || c == '\'' || c == '-';
    if (is_part)
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (text.back() != ' ')
      text += ' ';
  }
  text += ' ';
  std::vector<std::string> found;
  for (const auto& word : retired_words())
    if (text.find(' ' + word + ' ') != std::string::npos) found.push_back(word);
  return found;
}

/// README.md, recipes/README.md and every page of docs/.
inline std::vector<Page> pages() {
  std::vector<Page> result{read_page("README.md"), read_page("recipes/README.md")};
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(source_folder() / "docs")) {
    if (entry.path().extension() == ".md")
      result.push_back(
          read_page(std::filesystem::relative(entry.path(), source_folder()).generic_string()));
  }
  return result;
}

}  // namespace tare::testing
