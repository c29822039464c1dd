// Asks the terminal for its width, and wraps and colours text for it.
#include "tare/base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string_view>
#include <vector>

namespace tare {
namespace {

const char* code_of(Tint tint) {
  switch (tint) {
    case Tint::bold:
      return "\033[1m";
    case Tint::dim:
      return "\033[2m";
    case Tint::red:
      return "\033[31m";
    case Tint::green:
      return "\033[32m";
    case Tint::yellow:
      return "\033[33m";
  }
  return "";
}

bool is_unit(std::string word) {
  while (!word.empty() && std::string_view(",;.:)").find(word.back()) != std::string_view::npos)
    word.pop_back();
  return word == "B" || word == "KiB" || word == "MiB" || word == "GiB" || word == "TiB" ||
         word == "%" || word == "ms" || word == "s" || word == "min" || word == "h";
}

/// A number and the unit behind it are one.
std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    const char last = words.empty() ? ' ' : words.back().back();
    if (last >= '0' && last <= '9' && is_unit(word))
      words.back() += ' ' + word;
    else
      words.push_back(word);
  }
  return words;
}

}  // namespace

size_t terminal_width() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

bool on_terminal(int descriptor) {
  const char* kind = std::getenv("TERM");
  return ::isatty(descriptor) == 1 && (kind == nullptr || std::string_view(kind) != "dumb");
}

bool colour_allowed() {
  const char* refused = std::getenv("NO_COLOR");
  return refused == nullptr || *refused == '\0';
}

std::string tinted(const std::string& text, Tint tint, bool on) {
  return on ? code_of(tint) + text + "\033[0m" : text;
}

bool takes_colour(const std::ostream& out) {
  return &out == &std::cout && on_terminal() && colour_allowed();
}

std::string wrapped(const std::string& text, size_t width, size_t start, size_t indent) {
  std::string all;
  size_t column = start;
  for (const auto& word : words_of(text)) {
    if (!all.empty() && column + 1 + word.size() > width) {
      all += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (!all.empty()) {
      all += ' ';
      ++column;
    }
    all += word;
    column += word.size();
  }
  return all;
}

size_t width_for(const std::ostream& out) {
  return &out == &std::cout && on_terminal() ? terminal_width() : kAnyWidth;
}

std::string fitted(const std::string& line, const std::ostream& out) {
  const size_t width = width_for(out);
  if (line.size() <= width) return line;
  const size_t start = std::min(line.find_first_not_of(' '), line.size());
  return line.substr(0, start) + wrapped(line.substr(start), width, start, start + 2);
}

std::string fitted_lines(const std::string& text, const std::ostream& out) {
  std::istringstream lines(text);
  std::string all;
  for (std::string line; std::getline(lines, line);) all += fitted(line, out) + '\n';
  return all;
}

}  // namespace tare
