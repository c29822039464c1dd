#include "tare/base/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string_view>

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
  std::istringstream words(text);
  std::string all;
  size_t column = start;
  for (std::string word; words >> word;) {
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

std::string fitted(const std::string& line, const std::ostream& out) {
  return &out == &std::cout && on_terminal() ? wrapped(line, terminal_width(), 0, 2) : line;
}

}  // namespace tare
