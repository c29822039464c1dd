// Reads and writes what a search varies.
#include "tare/search/space.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tare/base/error.h"
#include "tare/config/scalar.h"

namespace tare::search {
namespace {

using config::Kind;
using config::Node;

struct RangeFields {
  std::optional<double> min{}, max{}, step{};
  bool log = false;
};
void visit_fields(config::Visitor& visit, RangeFields& o) {
  visit("min", o.min)("max", o.max)("step", o.step, config::above(0))("log", o.log);
}

bool is_whole(const Node* node) {
  return !node || (node->kind == Kind::scalar && config::as_integer(node->text).has_value());
}

Range read_range(const Node& node) {
  const auto fields = config::read<RangeFields>(node);
  const auto refuse = [&](const char* problem, const char* allowed) {
    throw ConfigError(node.source, "", problem, allowed, config::describe(node));
  };
  if (!fields.min || !fields.max) refuse("has no min or no max", "{min: A, max: B}, or a list");
  if (!std::isfinite(*fields.min) || !std::isfinite(*fields.max) || *fields.min > *fields.max)
    refuse("has a min above its max", "finite numbers, min <= max");
  if (fields.log && (*fields.min <= 0 || fields.step))
    refuse("cannot be logarithmic", "min above 0, and no step");
  const bool whole =
      is_whole(node.find("min")) && is_whole(node.find("max")) && is_whole(node.find("step"));
  return {.low = *fields.min,
          .high = *fields.max,
          .step = fields.step,
          .log = fields.log,
          .integer = whole};
}

Parameter read_parameter(const config::Entry& entry) {
  Parameter parameter{.name = entry.key};
  const Node& node = entry.value;
  const Node* values = node.kind == Kind::sequence ? &node : node.find("values");
  if (values && (values->kind != Kind::sequence || (values != &node && node.entries.size() > 1)))
    throw ConfigError(node.source, "", "must be {values: [...]} alone", "", config::describe(node));
  if (values) {
    if (values->items.empty())
      throw ConfigError(values->source, "", "has no values", "at least one", "[]");
    parameter.values = values->items;
  } else if (node.kind == Kind::map) {
    parameter.range = read_range(node);
  } else {
    throw ConfigError(node.source, "", "must be a list of values or {min: A, max: B}",
                      "a value that is the same in all runs goes under set",
                      config::describe(node));
  }
  return parameter;
}

std::optional<double> number_of(const Node& node) {
  if (node.kind != Kind::scalar || node.quoted) return std::nullopt;
  return config::as_number(node.text);
}

}  // namespace

const Parameter* Space::find(std::string_view name) const {
  const auto found = std::ranges::find(parameters, name, &Parameter::name);
  return found == parameters.end() ? nullptr : &*found;
}

void from_node(const Node& node, Space& value) {
  if (node.kind != Kind::map)
    throw ConfigError(node.source, "", "must be a mapping of the recipe's keys", "",
                      config::describe(node));
  value.parameters.clear();
  for (const auto& entry : node.entries) {
    try {
      value.parameters.push_back(read_parameter(entry));
    } catch (const ConfigError& error) {
      throw error.within(entry.key, entry.key_source);
    }
  }
}

Node to_node(const Space& value) {
  Node all = Node::map();
  for (const auto& parameter : value.parameters) {
    if (!parameter.range) {
      all.set(parameter.name, Node::sequence(parameter.values));
      continue;
    }
    const Range& range = *parameter.range;
    Node& node = all.set(parameter.name, Node::map());
    node.set("min", Node::scalar(config::number_text(range.low)));
    node.set("max", Node::scalar(config::number_text(range.high)));
    if (range.step) node.set("step", Node::scalar(config::number_text(*range.step)));
    if (range.log) node.set("log", Node::scalar("true"));
  }
  return all;
}

const Node* Settings::find(std::string_view name) const {
  const auto found = std::ranges::find_if(values, [&](const auto& v) { return v.first == name; });
  return found == values.end() ? nullptr : &found->second;
}

void from_node(const Node& node, Settings& value) {
  if (node.kind != Kind::map)
    throw ConfigError(node.source, "", "must be a mapping of keys to values", "",
                      config::describe(node));
  value.values.clear();
  for (const auto& entry : node.entries) value.values.emplace_back(entry.key, entry.value);
}

Node to_node(const Settings& value) {
  Node all = Node::map();
  for (const auto& [key, setting] : value.values) all.set(key, setting);
  return all;
}

bool equal(const Node& a, const Node& b) {
  const auto x = number_of(a), y = number_of(b);
  if (x || y) return x == y;
  if (a.kind != b.kind || a.text != b.text || a.entries.size() != b.entries.size()) return false;
  return std::ranges::equal(a.items, b.items, equal) &&
         std::ranges::all_of(a.entries, [&](const config::Entry& entry) {
           const Node* other = b.find(entry.key);
           return other && equal(entry.value, *other);
         });
}

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

}  // namespace tare::search
