// Makes, describes and dumps configuration trees.
#include "tare/config/node.h"

#include <yaml-cpp/emitter.h>
#include <yaml-cpp/emittermanip.h>
#include <yaml-cpp/null.h>

#include <algorithm>
#include <utility>

#include "tare/base/error.h"
#include "tare/config/scalar.h"

namespace tare::config {

Node Node::scalar(std::string plain) {
  Node node;
  node.kind = Kind::scalar;
  node.text = std::move(plain);
  return node;
}

Node Node::string(std::string value) {
  Node node = scalar(std::move(value));
  node.quoted = !reads_as_text(node.text);
  return node;
}

Node Node::sequence(std::vector<Node> items) {
  Node node;
  node.kind = Kind::sequence;
  node.items = std::move(items);
  return node;
}

Node Node::map() {
  Node node;
  node.kind = Kind::map;
  return node;
}

const Node* Node::find(std::string_view key) const {
  const auto entry = std::find_if(entries.begin(), entries.end(),
                                  [key](const Entry& candidate) { return candidate.key == key; });
  return entry == entries.end() ? nullptr : &entry->value;
}

Node* Node::find(std::string_view key) { return const_cast<Node*>(std::as_const(*this).find(key)); }

Node& Node::set(std::string key, Node value) {
  kind = Kind::map;
  if (Node* present = find(key)) return *present = std::move(value);
  entries.push_back({std::move(key), {}, std::move(value)});
  return entries.back().value;
}

std::string describe(const Node& node) {
  switch (node.kind) {
    case Kind::null:
      return "nothing";
    case Kind::sequence:
      return "a list";
    case Kind::map:
      return "a mapping";
    case Kind::scalar:
      break;
  }
  const std::string text = printable(node.text, 60);
  return node.quoted ? "\"" + text + "\"" : text;
}

void refuse_name(const Node& node, const std::vector<std::string>& known) {
  throw ConfigError(node.source, "", "is not known" + did_you_mean(node.text, known), listed(known),
                    describe(node));
}

size_t choice(const Node& node, std::initializer_list<std::string_view> names) {
  if (node.kind == Kind::scalar)
    for (size_t i = 0; i < names.size(); ++i)
      if (names.begin()[i] == node.text) return i;
  refuse_name(node, {names.begin(), names.end()});
}

namespace {

bool is_leaf(const Node& node) { return node.kind == Kind::null || node.kind == Kind::scalar; }

// Plain text that, at the start of a line, would end the document.
bool begins_document(const std::string& text) {
  return text.starts_with("---") || text.starts_with("...");
}

void emit(YAML::Emitter& out, const Node& node) {
  switch (node.kind) {
    case Kind::null:
      out << YAML::Null;
      return;
    case Kind::scalar:
      if (node.quoted || begins_document(node.text)) out << YAML::DoubleQuoted;
      // The emitter's other form leaves DEL and reordering characters as they are, which reading
      // refuses.
      if (printable(node.text, node.text.size()) != node.text) out << YAML::EscapeNonAscii;
      out << node.text;
      return;
    case Kind::sequence:
      if (std::all_of(node.items.begin(), node.items.end(), is_leaf)) out << YAML::Flow;
      out << YAML::BeginSeq;
      for (const Node& item : node.items) emit(out, item);
      out << YAML::EndSeq;
      return;
    case Kind::map:
      break;
  }
  if (node.entries.empty()) out << YAML::Flow;
  out << YAML::BeginMap;
  for (const Entry& entry : node.entries) {
    out << YAML::Key;
    emit(out, Node::string(entry.key));
    out << YAML::Value;
    emit(out, entry.value);
  }
  out << YAML::EndMap;
}

}  // namespace

std::string to_yaml(const Node& node) {
  YAML::Emitter out;
  emit(out, node);
  return std::string(out.c_str(), out.size()) + "\n";
}

std::string flow_text(const Node& value) {
  std::string text;
  switch (value.kind) {
    case Kind::null:
      return "null";
    case Kind::sequence:
      for (const auto& item : value.items) text += (text.empty() ? "" : ", ") + flow_text(item);
      return '[' + text + ']';
    case Kind::map:
      for (const auto& entry : value.entries)
        text += (text.empty() ? "" : ", ") + flow_text(Node::string(entry.key)) + ": " +
                flow_text(entry.value);
      return '{' + text + '}';
    case Kind::scalar:
      break;
  }
  // One in a list is written so that it stands on one line, between commas and brackets.
  text = to_yaml(Node::sequence({value}));
  return text.substr(text.find('[') + 1, text.rfind(']') - text.find('[') - 1);
}

}  // namespace tare::config
