#include "tare/sweep/grid.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "tare/base/error.h"
#include "tare/config/scalar.h"
#include "tare/sweep/furcate.h"
#include "tare/sweep/identity.h"

namespace tare::sweep {
namespace {

using config::Kind;
using config::Node;

constexpr size_t kMaxName = 128;  // as io::checked_name

std::optional<double> number_of(const Node& node) {
  if (node.kind != Kind::scalar || node.quoted) return std::nullopt;
  return config::as_number(node.text);
}

/// Numbers by value: 1 is 1.0.
bool equal(const Node& a, const Node& b) {
  const auto x = number_of(a), y = number_of(b);
  if (x || y) return x == y;
  if (a.kind == Kind::scalar && b.kind == Kind::scalar) return a.text == b.text;
  return a.kind == b.kind && flow_text(a) == flow_text(b);
}

bool matches(const Settings& pairs, const Cell& cell, const Settings& fixed) {
  return std::ranges::all_of(pairs.values, [&](const auto& pair) {
    const Node* value = cell.find(pair.first);
    if (!value) value = fixed.find(pair.first);
    return value && equal(*value, pair.second);
  });
}

std::vector<Node> values_of(const Parameter& parameter) {
  if (!parameter.range) return parameter.values;
  const Range& range = *parameter.range;
  if (!range.step && !range.integer)
    throw ConfigError("sweep", "parameters." + parameter.name, "cannot be counted for a grid",
                      "a list, a step, or whole numbers", "a range");
  const double count = count_of(parameter);
  if (count > static_cast<double>(kMaxCells))
    throw ConfigError("sweep", "parameters." + parameter.name, "has too many values",
                      "at most " + std::to_string(kMaxCells), config::number_text(count));
  std::vector<Node> values;
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) {
    const double value = range.low + static_cast<double>(i) * range.step.value_or(1);
    values.push_back(number_node(range, std::min(value, range.high)));
  }
  return values;
}

std::string python_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[64];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  const std::string_view text(buffer, static_cast<size_t>(end.ptr - buffer));
  const int exponent = std::stoi(std::string(text.substr(text.find('e') + 1)));
  if (exponent < -4 || exponent >= 16) return std::string(text);
  const auto fixed = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed);
  std::string digits(buffer, fixed.ptr);
  return digits.find('.') == std::string::npos ? digits + ".0" : digits;
}

bool is_text(const Node& value) {
  if (value.kind != Kind::scalar) return false;
  return value.quoted || !(config::as_bool(value.text) || config::as_number(value.text));
}

/// As Python's repr(): text has quotes.
std::string python_repr(const Node& value) {
  return is_text(value) ? '\'' + value.text + '\'' : python_text(value);
}

std::string python_list(const Node& node) {
  std::string text;
  for (const auto& item : node.items) text += (text.empty() ? "" : ", ") + python_repr(item);
  return '[' + text + ']';
}

std::string python_map(const Node& node) {
  std::string text;
  for (const auto& entry : node.entries)
    text += (text.empty() ? "'" : ", '") + entry.key + "': " + python_repr(entry.value);
  return '{' + text + '}';
}

/// "optimizer.weight_decay": "owd".
std::string initials(std::string_view key) {
  std::string letters;
  bool begins = true;
  for (const char c : key) {
    const bool separates = c == '_' || c == '.';
    if (begins && !separates) letters += c;
    begins = separates;
  }
  return letters;
}

}  // namespace

double count_of(const Parameter& parameter) {
  if (!parameter.range) return static_cast<double>(parameter.values.size());
  const Range& range = *parameter.range;
  if (!range.step && !range.integer) return std::numeric_limits<double>::infinity();
  return std::floor((range.high - range.low) / range.step.value_or(1) * (1 + 1e-12)) + 1;
}

Node number_node(const Range& range, double value) {
  return Node::scalar(range.integer ? std::to_string(std::llround(value))
                                    : config::number_text(value));
}

Cell reduced(Cell cell, const SweepOptions& sweep) {
  // A parameter may depend on one that is left out itself.
  for (bool again = true; std::exchange(again, false);) {
    for (const When& when : sweep.when) {
      const auto found = std::ranges::find_if(
          cell.values, [&](const auto& value) { return value.first == when.param; });
      if (found == cell.values.end() || matches(when.condition, cell, sweep.set)) continue;
      cell.values.erase(found);
      again = true;
    }
  }
  return cell;
}

bool excluded(const Cell& cell, const SweepOptions& sweep) {
  return std::ranges::any_of(
      sweep.exclude, [&](const Settings& pairs) { return matches(pairs, cell, sweep.set); });
}

std::vector<Cell> grid(const SweepOptions& sweep) {
  std::vector<Cell> cells(1);
  for (const auto& parameter : sweep.parameters.parameters) {
    const auto values = values_of(parameter);
    if (cells.size() * values.size() > kMaxCells)
      throw ConfigError("sweep", "parameters", "has too many combinations",
                        "at most " + std::to_string(kMaxCells),
                        std::to_string(cells.size() * values.size()));
    std::vector<Cell> longer;
    longer.reserve(cells.size() * values.size());
    for (const Cell& cell : cells) {
      for (const Node& value : values) {
        longer.push_back(cell);
        longer.back().values.emplace_back(parameter.name, value);
      }
    }
    cells = std::move(longer);
  }
  std::vector<Cell> kept;
  std::unordered_set<std::string> seen;
  for (Cell& cell : cells) {
    Cell one = sweep.when.empty() ? std::move(cell) : reduced(std::move(cell), sweep);
    if (excluded(one, sweep)) continue;
    if (seen.insert(flow_text(to_node(one))).second) kept.push_back(std::move(one));
  }
  return kept;
}

std::string python_text(const Node& value) {
  switch (value.kind) {
    case Kind::null:
      return "None";
    case Kind::sequence:
      return python_list(value);
    case Kind::map:
      return python_map(value);
    case Kind::scalar:
      break;
  }
  if (value.quoted) return value.text;
  if (const auto flag = config::as_bool(value.text)) return *flag ? "True" : "False";
  if (const auto whole = config::as_integer(value.text)) return std::to_string(*whole);
  if (const auto number = config::as_number(value.text)) return python_number(*number);
  return value.text;
}

std::string python_text(const Cell& cell) {
  std::string text;
  for (const auto& [key, value] : cell.values)
    text += (text.empty() ? "" : " ") + key + '=' + python_text(value);
  return text;
}

std::string run_name(const SweepOptions& sweep, int64_t id, const Cell& cell) {
  std::string text = sweep.name + std::to_string(id);
  const bool furcate = sweep.furcate.kind == Kind::map;
  const Node* folder = furcate ? cell.find("data_dir") : nullptr;
  const std::string word = folder ? last_part(folder->text) : sweep.run_word;
  if (!word.empty()) text += '_' + word;
  for (const auto& [key, value] : cell.values)
    if (!furcate || key != "data_dir") text += '_' + initials(key) + python_text(value);
  const auto keeps = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
  };
  for (size_t i = sweep.name.size(); i < text.size(); ++i)
    if (!keeps(text[i])) text[i] = '-';
  if (text.size() > kMaxName) text.resize(kMaxName);
  return text;
}

}  // namespace tare::sweep
