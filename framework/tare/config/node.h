// A configuration tree: YAML read with limits, each value with the place it came from.
//
// What is read: one document of mappings, lists and scalars, anchors and aliases, merge keys (`<<`)
// of a mapping alias or a list of them. What is refused, as a ConfigError with file:line:column: a
// key given twice, tabs in an indentation, control characters, tags (`!!python/...`), keys that are
// no text, cyclic aliases, several documents, and whatever passes the limits below. Nothing of the
// YAML library shows here, and none of its exceptions comes out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "tare/base/error.h"

namespace tare::config {

inline constexpr int64_t kMaxFileBytes = int64_t{1} << 20;
inline constexpr int64_t kMaxDepth = 64;       ///< nested mappings and lists, aliases followed
inline constexpr int64_t kMaxNodes = 100'000;  ///< copies that anchors and aliases make included
inline constexpr int64_t kMaxTextBytes = 8 * kMaxFileBytes;  ///< of scalars and keys; copies too

enum class Kind { null, scalar, sequence, map };

struct Entry;

/// One value of the tree: a plain value type, owned by whoever holds it. A Node made in code has an
/// empty source.
struct Node {
  Kind kind = Kind::null;
  std::string text;            ///< of a scalar, unquoted
  bool quoted = false;         ///< a quoted scalar is text, never a number, `true` or null
  std::vector<Node> items;     ///< of a sequence
  std::vector<Entry> entries;  ///< of a map, in the order of the file; keys are unique
  Source source;               ///< where the value starts

  /// A scalar that is written as it is: a number, `true`.
  [[nodiscard]] static Node scalar(std::string plain);
  /// Text; quoted where it would otherwise read as a number, a bool or null.
  [[nodiscard]] static Node string(std::string value);
  [[nodiscard]] static Node sequence(std::vector<Node> items);
  [[nodiscard]] static Node map();

  /// The value of `key`, or nullptr where this is no map or has no such key. Valid until the map
  /// changes.
  [[nodiscard]] const Node* find(std::string_view key) const;
  [[nodiscard]] Node* find(std::string_view key);
  /// Sets the value of `key`; a new key goes to the end. A null node becomes a map; *this must be
  /// one of the two.
  Node& set(std::string key, Node value);
};

struct Entry {
  std::string key;
  Source key_source;
  Node value;
};

/// Reads a YAML file. An empty file gives a null node. Throws IoError naming the path where it
/// cannot be read, ConfigError for its content.
[[nodiscard]] Node parse_file(const std::filesystem::path& path);
/// The same for text; `name` stands for the file in sources and messages.
[[nodiscard]] Node parse_text(std::string_view text, const std::string& name);

/// Canonical YAML: block mappings in the order of the node, lists of scalars on one line, text in
/// quotes where it needs them, a newline at the end. parse_text reads the same tree from it;
/// only bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string to_yaml(const Node& node);

/// What stands there, for a message: "nothing", "a list", "a mapping", or the scalar's text,
/// printable and cut.
[[nodiscard]] std::string describe(const Node& node);

/// "a, b, c".
[[nodiscard]] std::string joined(const std::vector<std::string>& names);

/// Throws the ConfigError for a name that is not among the known ones: they, and the nearest.
[[noreturn]] void refuse_name(const Node& node, const std::vector<std::string>& known);

/// The index of the scalar `node` in `names`; for reading enumerations. Throws ConfigError with the
/// allowed names and the nearest one.
[[nodiscard]] size_t choice(const Node& node, std::initializer_list<std::string_view> names);

}  // namespace tare::config
