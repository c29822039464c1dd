// A configuration tree: YAML read within limits, each value with its position in the file.
//
// Accepted: one document of mappings, lists and scalars, anchors and aliases, merge keys (`<<`) of
// an alias of a mapping or a list of them. Refused, as a ConfigError with file:line:column:
// repeated keys, tabs in an indentation, control characters, tags (`!!python/...`), keys that are
// not text, cyclic aliases, several documents, and whatever exceeds the limits below. No type or
// exception of the YAML library appears here.
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

inline constexpr int64_t kMaxFileBytes = int64_t{1} << 20;  ///< of a YAML file
inline constexpr int64_t kMaxDepth = 64;       ///< of mappings and lists, aliases expanded
inline constexpr int64_t kMaxNodes = 100'000;  ///< including copies made by aliases
inline constexpr int64_t kMaxTextBytes = 8 * kMaxFileBytes;  ///< scalars and keys, with copies

/// Identifies the type of a Node.
enum class Kind { null, scalar, sequence, map };

struct Entry;

/// Holds one value of the tree. Owns its children. A Node made in code has an empty source.
struct Node {
  Kind kind = Kind::null;      ///< decides which of the members below count
  std::string text;            ///< of a scalar, without quotes
  bool quoted = false;         ///< a quoted scalar is text, never a number, `true` or null
  std::vector<Node> items;     ///< of a sequence
  std::vector<Entry> entries;  ///< of a map, in the order of the file; keys are unique
  Source source;               ///< where the value starts

  /// Makes a scalar that is written without quotes: a number, `true`.
  [[nodiscard]] static Node scalar(std::string plain);
  /// Makes a text, which is quoted if it would otherwise read as a number, a bool or null.
  [[nodiscard]] static Node string(std::string value);
  [[nodiscard]] static Node sequence(std::vector<Node> items);  ///< makes a list of the items
  [[nodiscard]] static Node map();                              ///< makes an empty map

  /// Returns the value of `key`, or nullptr if this is not a map or has no such key. Valid until
  /// the map changes.
  [[nodiscard]] const Node* find(std::string_view key) const;
  [[nodiscard]] Node* find(std::string_view key);  ///< finds `key`, to change its value
  /// Sets the value of `key`; a new key is appended. *this must be a map, or null, which becomes a
  /// map.
  Node& set(std::string key, Node value);
};

/// Holds one key of a map and its value.
struct Entry {
  std::string key;    ///< the key's text
  Source key_source;  ///< where the key stands
  Node value;         ///< what the key stands for
};

/// Reads a YAML file. An empty file gives a null node. Throws IoError if it cannot be read,
/// ConfigError for its content.
[[nodiscard]] Node parse_file(const std::filesystem::path& path);
/// Parses text; `name` stands for the file in sources and messages.
[[nodiscard]] Node parse_text(std::string_view text, const std::string& name);

/// Returns canonical YAML: block mappings in the order of the node, lists of scalars on one line,
/// quotes only where needed, a newline at the end. parse_text() of it gives the same tree, except
/// that bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string to_yaml(const Node& node);

/// Returns the value on one line, as YAML and, where it has no plain text, as JSON.
[[nodiscard]] std::string flow_text(const Node& value);

/// Returns the value for a message: "nothing", "a list", "a mapping", or the scalar's text, escaped
/// and shortened.
[[nodiscard]] std::string describe(const Node& node);

/// Throws the ConfigError for an unknown name, with the known ones and the nearest.
[[noreturn]] void refuse_name(const Node& node, const std::vector<std::string>& known);

/// Returns the index of the scalar `node` in `names`, for reading enumerations. Throws as
/// refuse_name().
[[nodiscard]] size_t choice(const Node& node, std::initializer_list<std::string_view> names);

}  // namespace tare::config
