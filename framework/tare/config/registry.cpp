// The parts of Registry that do not depend on what it makes.
#include "tare/config/registry.h"

#include "tare/base/error.h"

namespace tare::config {

bool Choice::operator==(const Choice& other) const {
  return name == other.name && to_yaml(options) == to_yaml(other.options);
}

void from_node(const Node& node, Choice& value) {
  if (node.kind == Kind::scalar) {
    value = {.name = node.text};
    value.options.source = node.source;
    return;
  }
  if (node.kind != Kind::map || node.entries.size() != 1)
    throw ConfigError(node.source, "", "must be a name, or a mapping of one name to its options",
                      "", describe(node));
  const Entry& only = node.entries.front();
  const bool empty = only.value.kind == Kind::null;
  value = {.name = only.key, .options = empty ? Node::map() : only.value};
  value.options.source = only.key_source;  // for what is missing or unknown
}

void from_flat_node(const Node& node, Choice& value) {
  value.flat = true;
  value.options = Node::map();
  value.options.source = node.source;
  if (node.kind == Kind::scalar) {
    value.name = node.text;
    return;
  }
  if (node.kind != Kind::map)
    throw ConfigError(node.source, "", "must be a name, or a mapping with a type and its options",
                      "", describe(node));
  for (const Entry& entry : node.entries) {
    if (entry.key != "type") {
      value.options.entries.push_back(entry);
      continue;
    }
    if (entry.value.kind != Kind::scalar)
      throw ConfigError(entry.value.source, "type", "must be a name", "", describe(entry.value));
    value.name = entry.value.text;
    value.options.source = entry.value.source;  // for what is missing or unknown
  }
}

Node to_node(const Choice& value) {
  if (value.flat) {
    Node node = Node::map();
    node.set("type", Node::string(value.name));
    for (const Entry& option : value.options.entries) node.set(option.key, option.value);
    return node;
  }
  Node node = Node::map();
  node.set(value.name, value.options);
  return node;
}

Node to_short_node(const Choice& value) {
  return value.options.entries.empty() ? Node::string(value.name) : to_node(value);
}

bool OwnOptions::operator==(const OwnOptions& other) const {
  return to_yaml(node) == to_yaml(other.node);
}

void from_node(const Node& node, OwnOptions& value) {
  if (node.kind != Kind::map && node.kind != Kind::null)
    throw ConfigError(node.source, "", "must be a mapping of options to their values", "",
                      describe(node));
  value.node = node.kind == Kind::map ? node : Node::map();
  value.node.source = node.source;
}

Node to_node(const OwnOptions& value) { return value.node; }

void refuse_entry(const std::string& kind, const Choice& choice,
                  const std::vector<std::string>& names) {
  const std::string problem = "is no " + kind + did_you_mean(choice.name, names);
  const Source& place = choice.options.source;
  if (place.file.empty() && !choice.flat)  // of a name given in code, which has no place
    throw ConfigError(kind, "name", problem, listed_entries(names), choice.name);
  throw ConfigError(place, choice.flat ? "type" : "", problem, listed_entries(names), choice.name);
}

ConfigError unknown_entry(std::string_view where, const std::string& kind, const std::string& name,
                          const std::vector<std::string>& names, const std::string& field) {
  return ConfigError(
             where, "",
             "no " + kind + " is named '" + printable(name) + "'" + did_you_mean(name, names),
             listed_entries(names), "")
      .about(field.empty() ? kind : field, listed(names), name);
}

}  // namespace tare::config
