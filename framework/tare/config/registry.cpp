// The parts of Registry that do not depend on what it makes.
#include "tare/config/registry.h"

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

Node to_node(const Choice& value) {
  Node node = Node::map();
  node.set(value.name, value.options);
  return node;
}

void refuse_entry(const std::string& kind, const Choice& choice,
                  const std::vector<std::string>& names) {
  throw ConfigError(choice.options.source, "", "is no " + kind + did_you_mean(choice.name, names),
                    joined(names), choice.name);
}

}  // namespace tare::config
