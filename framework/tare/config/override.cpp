// Applies `key=value` to a tree.
#include "tare/config/override.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tare/config/scalar.h"

namespace tare::config {

namespace {

constexpr const char* kCommandLine = "command line";

[[noreturn]] void refuse(std::string_view field, std::string_view problem, std::string allowed = {},
                         std::string got = {}) {
  throw ConfigError({kCommandLine, 0, 0}, std::string(field), problem, std::move(allowed),
                    std::move(got));
}

std::vector<std::string> split_path(std::string_view key,
                                    std::initializer_list<std::string_view> flat) {
  std::vector<std::string> parts;
  for (size_t start = 0; start <= key.size();) {
    const size_t end = std::min(key.find('.', start), key.size());
    parts.emplace_back(key.substr(start, end - start));
    if (parts.back().empty()) refuse(key, "has an empty part", "names joined by dots");
    start = end + 1;
  }
  const bool is_flat = std::find(flat.begin(), flat.end(), parts.front()) != flat.end();
  if (is_flat && parts.size() > 2)
    parts = {parts.front(), std::string(key.substr(parts.front().size() + 1))};
  if (parts.size() > static_cast<size_t>(kMaxDepth))
    refuse(key, "is too deep", "at most " + std::to_string(kMaxDepth) + " levels");
  return parts;
}

Node& list_item(Node& list, std::string_view key, const std::string& part) {
  const auto index = as_integer(part);
  if (index && *index >= 0 && *index < static_cast<int64_t>(list.items.size()))
    return list.items[static_cast<size_t>(*index)];
  if (list.items.empty()) refuse(key, "names an item of an empty list", "", part);
  refuse(key, "names an item that the list does not have",
         "0 to " + std::to_string(list.items.size() - 1), part);
}

Node& child(Node& node, std::string_view key, const std::string& part) {
  switch (node.kind) {
    case Kind::sequence:
      return list_item(node, key, part);
    case Kind::scalar:
      refuse(key, "leads through \"" + describe(node) + "\", which has no keys");
    case Kind::null:
      node.kind = Kind::map;
      node.source = {kCommandLine, 0, 0};
      break;
    case Kind::map:
      break;
  }
  if (Node* present = node.find(part)) return *present;
  Node& made = node.set(part, Node());
  node.entries.back().key_source = {kCommandLine, 0, 0};
  return made;
}

/// Positions inside of an argument do not help: the whole value is from the command line.
void set_source(Node& node) {
  node.source = {kCommandLine, 0, 0};
  for (Node& item : node.items) set_source(item);
  for (Entry& entry : node.entries) {
    entry.key_source = node.source;
    set_source(entry.value);
  }
}

/// Whether a value is one mark, such as a separator, which YAML would take for a part of its own
/// syntax. Brackets and quotes are left to YAML, which says that they are not closed; `~` is null.
bool is_mark(std::string_view text) {
  constexpr std::string_view kMarks = "\t!#$%&()*+,-./:;<=>?@\\]^_`|}";
  return text.size() == 1 && kMarks.find(text.front()) != std::string_view::npos;
}

Node parse_value(std::string_view key, std::string_view text) {
  if (is_mark(text)) {
    Node mark = Node::string(std::string(text));
    set_source(mark);
    return mark;
  }
  Node value;
  try {
    value = parse_text(text, kCommandLine);
  } catch (const ConfigError& error) {
    throw ConfigError({kCommandLine, 0, 0}, std::string(key),
                      "has a value that cannot be read: " + error.problem(), error.allowed(),
                      std::string(text));
  }
  set_source(value);
  return value;
}

/// Removes a key, or leaves one that is not there as unset, so that the reader refuses a key that
/// it does not know.
void unset(Node* parent, Node& node, const std::string& part) {
  if (parent && parent->kind == Kind::map && node.kind != Kind::null) {
    std::erase_if(parent->entries, [&](const Entry& entry) { return entry.key == part; });
    return;
  }
  node = Node();
  node.source = {kCommandLine, 0, 0};
  node.quoted = true;
}

}  // namespace

bool is_unset(const Node& node) { return node.kind == Kind::null && node.quoted; }

void apply_override(Node& root, std::string_view assignment,
                    std::initializer_list<std::string_view> flat) {
  if (assignment.size() > kMaxArgumentBytes)
    refuse("", "an argument is too long", "at most " + std::to_string(kMaxArgumentBytes) + " bytes",
           std::string(assignment.substr(0, 40)));
  const size_t equals = assignment.find('=');
  if (equals == std::string_view::npos)
    refuse("", "an override needs a '='", "key=value", std::string(assignment));
  const std::string_view key = assignment.substr(0, equals);
  if (key.empty()) refuse("", "an override needs a key", "key=value", std::string(assignment));
  Node changed = root;
  Node *parent = nullptr, *node = &changed;
  const std::vector<std::string> parts = split_path(key, flat);
  for (const std::string& part : parts) {
    parent = node;
    node = &child(*node, key, part);
  }
  const std::string_view value = assignment.substr(equals + 1);
  if (value.empty())
    unset(parent, *node, parts.back());
  else
    *node = parse_value(key, value);
  root = std::move(changed);
}

}  // namespace tare::config
