// Reads YAML through the parser's events: the tree is built with every limit checked before
// anything grows.
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <unordered_set>
#include <utility>

#include "tare/base/bytes.h"
#include "tare/base/io.h"
#include "tare/config/node.h"

namespace tare::config {

namespace {

class Builder : public YAML::EventHandler {
 public:
  explicit Builder(std::string name) : name_(std::move(name)) {}

  Node take() { return std::move(root_); }
  [[nodiscard]] Source at(const YAML::Mark& mark) const {
    return {name_, mark.line + 1, mark.column + 1};
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1)
      throw ConfigError(at(mark), "", "a second document starts here; one is allowed");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(Node(), mark, anchor); }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_tag(mark, tag);
    Node node = Node::scalar(value);
    node.quoted = tag == "!";
    add(std::move(node), mark, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto known = anchors_.find(anchor);
    if (known == anchors_.end()) throw ConfigError(at(mark), "", "the alias refers to itself");
    const Anchored& anchored = known->second;
    count(anchored.size, mark);
    if (static_cast<int64_t>(open_.size()) + anchored.size.depth > kMaxDepth) throw too_deep(mark);
    place(anchored.node, mark, anchored.size, true);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    start(Node::sequence({}), mark, tag, anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    start(Node::map(), mark, tag, anchor);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapEnd() override { end(); }

 private:
  /// Measures a finished value with all that is inside.
  struct Size {
    int64_t nodes = 1, text_bytes = 0, depth = 0;
  };
  struct Anchored {
    Node node;
    Size size;
  };
  struct Open {
    Node node;
    YAML::Mark mark;
    YAML::anchor_t anchor = 0;
    Size size{.depth = 1};
    bool has_key = false;
    std::string key;
    Source key_source;
    bool merge_key = false;
    std::unordered_set<std::string> keys;
    std::vector<Node> merged;
  };

  ConfigError too_deep(const YAML::Mark& mark) const {
    return {at(mark), "", "the nesting is too deep",
            "at most " + std::to_string(kMaxDepth) + " levels"};
  }
  void refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "?" && tag != "!")
      throw ConfigError(at(mark), "", "tags are not supported", "values without a tag", tag);
  }
  void count(const Size& size, const YAML::Mark& mark) {
    nodes_ += size.nodes;
    text_bytes_ += size.text_bytes;
    if (nodes_ > kMaxNodes)
      throw ConfigError(at(mark), "", "there are too many values, anchors and aliases included",
                        "at most " + std::to_string(kMaxNodes));
    if (text_bytes_ > kMaxTextBytes)
      throw ConfigError(at(mark), "", "there is too much text, anchors and aliases included",
                        "at most " + format_bytes(kMaxTextBytes));
  }

  void add(Node node, const YAML::Mark& mark, YAML::anchor_t anchor) {
    const Size size{.text_bytes = static_cast<int64_t>(node.text.size())};
    count(size, mark);
    node.source = at(mark);
    if (anchor != 0) {
      count(size, mark);  // it is kept a second time
      anchors_[anchor] = {node, size};
    }
    place(std::move(node), mark, size, false);
  }
  void start(Node node, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    refuse_tag(mark, tag);
    count({}, mark);
    if (static_cast<int64_t>(open_.size()) >= kMaxDepth) throw too_deep(mark);
    node.source = at(mark);
    open_.emplace_back();
    open_.back().node = std::move(node);
    open_.back().mark = mark;
    open_.back().anchor = anchor;
  }
  void end() {
    Open done = std::move(open_.back());
    open_.pop_back();
    merge(done);
    if (done.anchor != 0) {
      count(done.size, done.mark);  // it is kept a second time
      anchors_[done.anchor] = {done.node, done.size};
    }
    place(std::move(done.node), done.mark, done.size, false);
  }

  /// Puts a finished node where the next one belongs: root, list item, key or value.
  void place(Node node, const YAML::Mark& mark, const Size& size, bool alias) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    parent.size.nodes += size.nodes;
    parent.size.text_bytes += size.text_bytes;
    parent.size.depth = std::max(parent.size.depth, size.depth + 1);
    if (parent.node.kind == Kind::sequence) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.has_key) {
      take_key(parent, std::move(node), mark, alias);
    } else {
      take_value(parent, std::move(node));
    }
  }
  void take_key(Open& parent, Node node, const YAML::Mark& mark, bool alias) {
    if (node.kind != Kind::scalar || alias || (node.text.empty() && !node.quoted))
      throw ConfigError(at(mark), "", "a key must be plain text", "", describe(node));
    parent.has_key = true;
    parent.merge_key = node.text == "<<" && !node.quoted;
    parent.key_source = at(mark);
    parent.key = std::move(node.text);
    if (!parent.keys.insert(parent.key).second)
      throw ConfigError(parent.key_source, parent.key, "is given twice in the same mapping");
  }
  static void take_value(Open& parent, Node node) {
    parent.has_key = false;
    if (!parent.merge_key) {
      parent.node.entries.push_back({std::move(parent.key), parent.key_source, std::move(node)});
      return;
    }
    std::vector<Node> bases;
    if (node.kind == Kind::sequence) {
      bases = std::move(node.items);
    } else {
      bases.push_back(std::move(node));
    }
    for (Node& base : bases) {
      if (base.kind != Kind::map)
        throw ConfigError(parent.key_source, "", "a merge key takes mappings",
                          "<<: *name or <<: [*a, *b]", describe(base));
      parent.merged.push_back(std::move(base));
    }
  }
  /// Keys of the mapping itself win over merged ones, earlier merged ones over later.
  static void merge(Open& open) {
    open.keys.erase("<<");
    for (Node& base : open.merged)
      for (Entry& entry : base.entries)
        if (open.keys.insert(entry.key).second) open.node.entries.push_back(std::move(entry));
  }

  std::string name_;
  Node root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Anchored> anchors_;
  int64_t nodes_ = 0, text_bytes_ = 0;
  int documents_ = 0;
};

void check_size(std::string_view text, const std::string& name) {
  if (static_cast<int64_t>(text.size()) > kMaxFileBytes)
    throw ConfigError({name, 0, 0}, "", "is too large", "at most " + format_bytes(kMaxFileBytes),
                      format_bytes(static_cast<int64_t>(text.size())));
}

Source position(std::string_view text, size_t index, const std::string& name) {
  const std::string_view before = text.substr(0, index);
  const size_t start = before.rfind('\n') + 1;  // npos + 1 is 0
  return {name, std::count(before.begin(), before.end(), '\n') + 1,
          static_cast<int64_t>(index - start) + 1};
}

/// The YAML library would replace bytes that are no UTF-8, and end at some control characters.
void check_characters(std::string_view text, const std::string& name) {
  std::string plain(text);
  for (char& c : plain)
    if (c == '\t' || c == '\n') c = ' ';
  const std::string shown = printable(plain, plain.size());
  if (shown == plain) return;
  const auto first = std::mismatch(plain.begin(), plain.end(), shown.begin(), shown.end()).first;
  throw ConfigError(position(text, static_cast<size_t>(first - plain.begin()), name), "",
                    "a control character is not allowed here", "UTF-8 without control characters",
                    printable(std::string_view(&*first, 1)));
}

void check_tabs(std::string_view text, const std::string& name) {
  bool indentation = true;
  for (size_t i = 0; i < text.size(); ++i) {
    if (indentation && text[i] == '\t')
      throw ConfigError(position(text, i, name), "", "a tab stands in the indentation", "spaces");
    indentation = text[i] == '\n' || (indentation && text[i] == ' ');
  }
}

/// Returns the text with "\r\n" replaced by "\n"; any other "\r" is left to be refused.
std::string with_plain_newlines(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i)
    if (text.substr(i, 2) != "\r\n") plain += text[i];
  return plain;
}

}  // namespace

Node parse_text(std::string_view source, const std::string& name) {
  check_size(source, name);
  const std::string text = with_plain_newlines(source);
  check_characters(text, name);
  check_tabs(text, name);
  std::istringstream stream(text);
  Builder builder(name);
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    const std::string language = name.ends_with(".json") ? "JSON" : "YAML";
    throw ConfigError(builder.at(error.mark), "", "is not valid " + language + ": " + error.msg);
  }
  return builder.take();
}

Node parse_file(const std::filesystem::path& path) {
  // A little more than allowed, so that parse_text says what the limit is.
  return parse_text(io::read_text(path, 4 * kMaxFileBytes), path.string());
}

}  // namespace tare::config
