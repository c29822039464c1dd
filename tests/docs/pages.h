// What a documentation page holds that can be tried: its code blocks, code spans, links and tables.
#pragma once

#include <algorithm>
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
