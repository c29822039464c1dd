// The fields of an options struct, listed once. From that list come reading YAML, applying
// `key=value`, the canonical dump, the names of the keys, and checking a struct made in code.
//
//   struct FitOptions { int64_t epochs = 1; double max_lr = 1e-3; };
//   void visit_fields(auto& visit, FitOptions& o) {
//     visit("epochs", o.epochs, config::at_least(1));
//     visit("max_lr", o.max_lr, config::above(0));
//   }
//
// visit_fields is found by argument-dependent lookup, so it must be in the struct's namespace. It
// may be declared with config::Visitor& for `auto&` and defined in a source file.
//
// Field types: bool, int64_t, uint64_t, double, std::string, std::filesystem::path,
// std::optional<T> (null or missing: unset), std::vector<T>, any struct with visit_fields, and any
// type with these two functions in its namespace (they take precedence, so that a variant or an
// enumeration can have a form of its own):
//
//   void from_node(const config::Node&, T&);
//   config::Node to_node(const T&);
//
// from_node throws ConfigError(node.source, "", problem, allowed, got); callers add the field's
// path.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tare/config/node.h"

namespace tare::config {

/// Restricts the value of a field beyond its type. Applies to every scalar in the value: each item
/// of a list, the value of a set optional, both ends of a `{from, to}`. Number rules apply to
/// numbers only.
struct Rule {
  /// Selects the kind of restriction.
  enum class Kind { any, at_least, above, between, one_of };
  Kind kind = Kind::any;             ///< `any`: every value is allowed
  double low = 0, high = 0;          ///< limits; `low` alone but for `between`
  std::vector<std::string> names{};  ///< allowed words, of `one_of`
  bool open = false;                 ///< the names are of a registry, to which a program may add
  bool takes_null = false;           ///< null is read as an empty text
};
[[nodiscard]] Rule at_least(double low);              ///< allows numbers >= low
[[nodiscard]] Rule above(double low);                 ///< allows numbers > low
[[nodiscard]] Rule between(double low, double high);  ///< allows low to high, both included
/// Allows any text; a file may write null for an empty one.
[[nodiscard]] Rule text_or_null();
/// Allows one of the words; a file may write it in other letters, such as RMSProp for rmsprop.
[[nodiscard]] Rule one_of(std::initializer_list<const char*> names);
/// Allows one of the words, in upper or lower case.
[[nodiscard]] Rule one_of(std::vector<std::string> names);
/// Allows the name of an entry of a registry, in upper or lower case.
[[nodiscard]] Rule entry_of(std::vector<std::string> names);

/// Lets listed_entries() say what to do where a program of the user's own adds the name that is
/// missing. For the programs `tare` and `tare-predict`, which know Tare's entries alone; they call
/// it before anything else.
void hint_at_own_programs();

/// Returns the names of a registry as what is allowed.
[[nodiscard]] std::string listed_entries(const std::vector<std::string>& names);

/// Holds the functions that read, write and check a value through a void*; made by type_of().
struct Type {
  /// Writes what `node` holds to `value`; throws ConfigError.
  void (*read)(const Node& node, void* value);
  /// Returns what `value` holds as a node.
  Node (*write)(const void* value);
  /// Throws ConfigError if a value below `path` breaks a rule; `where` is the operation in the
  /// message.
  void (*check)(const void* value, std::string_view where, const std::string& path);
};

/// Refers to one field of an options struct; points into the struct.
struct Field {
  const char* name;  ///< the key; static
  void* value;       ///< in the struct, which must outlive this
  const Type* type;  ///< how the value is read, written and checked
  Rule rule;         ///< what the value must be
};

template <class T>
[[nodiscard]] const Type& type_of();

/// Collects the fields of an options struct; visit_fields calls it once per field.
class Visitor {
 public:
  /// Adds a field: its key, which must be static, the member, and what its value must be.
  template <class T>
  Visitor& operator()(const char* name, T& value, Rule rule = {}) {
    return add({name, &value, &type_of<T>(), std::move(rule)});
  }
  /// Adds a field that is read and written as a `Form`: a struct with a value of type T as its only
  /// member, and a YAML form of its own.
  template <class Form, class T>
  Visitor& as(const char* name, T& value, Rule rule = {});
  /// Adds the fields of another options struct that have these keys, in this order. Every key must
  /// be one of that struct.
  template <class S>
  Visitor& select(S& options, std::initializer_list<std::string_view> names) {
    Visitor all;
    visit_fields(all, options);
    for (const std::string_view name : names) add_named(all.fields(), name);
    return *this;
  }
  /// Returns the fields that have been added, in order.
  [[nodiscard]] std::span<const Field> fields() const { return fields_; }

 private:
  Visitor& add(Field field);
  void add_named(std::span<const Field> fields, std::string_view name);
  std::vector<Field> fields_;
};

template <class S>
concept Options = requires(Visitor& visit, S& options) {
  visit_fields(visit, options);
};

namespace detail {

template <class T>
concept Custom = requires(const Node& node, T& value) {
  from_node(node, value);
  Node(to_node(std::as_const(value)));
};

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;

void read_scalar(const Node& node, bool& value);
void read_scalar(const Node& node, int64_t& value);
void read_scalar(const Node& node, uint64_t& value);
void read_scalar(const Node& node, double& value);
void read_scalar(const Node& node, std::string& value);
void read_scalar(const Node& node, std::filesystem::path& value);
[[nodiscard]] Node write_scalar(bool value);
[[nodiscard]] Node write_scalar(int64_t value);
[[nodiscard]] Node write_scalar(uint64_t value);
[[nodiscard]] Node write_scalar(double value);
[[nodiscard]] Node write_scalar(const std::string& value);
[[nodiscard]] Node write_scalar(const std::filesystem::path& value);

void read_fields(const Node& node, std::span<const Field> fields);
/// Calls type.read(item, add(list)) for each item.
void read_items(const Node& node, const Type& type, void* (*add)(void* list), void* list);
[[nodiscard]] Node write_fields(std::span<const Field> fields);
void check_fields(std::span<const Field> fields, std::string_view where, const std::string& path);
[[nodiscard]] std::string item_path(const std::string& path, size_t index);

/// Returns a visitor that only reads the fields of a const object.
template <Options S>
Visitor visited(const S& options) {
  Visitor visit;
  visit_fields(visit, const_cast<S&>(options));
  return visit;
}

template <class T>
void read_value(const Node& node, void* target) {
  T& value = *static_cast<T*>(target);
  if constexpr (Custom<T>) {
    from_node(node, value);
  } else if constexpr (Options<T>) {
    read_fields(node, visited(value).fields());
  } else if constexpr (is_optional<T>) {
    if (node.kind == Kind::null) return value.reset();
    if (!value) value.emplace();
    read_value<typename T::value_type>(node, &*value);
  } else if constexpr (is_vector<T>) {
    value.clear();
    read_items(
        node, type_of<typename T::value_type>(),
        [](void* list) -> void* { return &static_cast<T*>(list)->emplace_back(); }, &value);
  } else {
    read_scalar(node, value);
  }
}

template <class T>
Node write_value(const void* source) {
  const T& value = *static_cast<const T*>(source);
  if constexpr (Custom<T>) {
    return to_node(value);
  } else if constexpr (Options<T>) {
    return write_fields(visited(value).fields());
  } else if constexpr (is_optional<T>) {
    return value ? write_value<typename T::value_type>(&*value) : Node();
  } else if constexpr (is_vector<T>) {
    Node list = Node::sequence({});
    for (const auto& item : value) list.items.push_back(write_value<typename T::value_type>(&item));
    return list;
  } else {
    return write_scalar(value);
  }
}

template <class T>
void check_value(const void* source, std::string_view where, const std::string& path) {
  [[maybe_unused]] const T& value = *static_cast<const T*>(source);
  if constexpr (Options<T>) {
    check_fields(visited(value).fields(), where, path);
  } else if constexpr (is_optional<T>) {
    if (value) check_value<typename T::value_type>(&*value, where, path);
  } else if constexpr (is_vector<T>) {
    for (size_t i = 0; i < value.size(); ++i)
      check_value<typename T::value_type>(&value[i], where, item_path(path, i));
  }
}

template <class Form, class T>
void read_as(const Node& node, void* target) {
  Form form{*static_cast<T*>(target)};
  read_value<Form>(node, &form);
  auto& [value] = form;
  *static_cast<T*>(target) = std::move(value);
}

template <class Form, class T>
Node write_as(const void* source) {
  const Form form{*static_cast<const T*>(source)};
  return write_value<Form>(&form);
}

template <class Form, class T>
void check_as(const void* source, std::string_view where, const std::string& path) {
  const Form form{*static_cast<const T*>(source)};
  check_value<Form>(&form, where, path);
}

}  // namespace detail

template <class Form, class T>
Visitor& Visitor::as(const char* name, T& value, Rule rule) {
  static constexpr Type type{&detail::read_as<Form, T>, &detail::write_as<Form, T>,
                             &detail::check_as<Form, T>};
  return add({name, &value, &type, std::move(rule)});
}

/// Returns how a value of type T is read, written and checked; the reference stays valid until the
/// process ends.
template <class T>
const Type& type_of() {
  static constexpr Type type{&detail::read_value<T>, &detail::write_value<T>,
                             &detail::check_value<T>};
  return type;
}

/// Reads `node` into `value`; missing keys keep their value. A null node is an empty mapping for
/// options. Throws ConfigError with source position, dotted path and what is allowed; `value` is
/// then unchanged.
template <class T>
void read_into(const Node& node, T& value) {
  T copy = value;
  type_of<T>().read(node, &copy);
  value = std::move(copy);
}

/// Reads a value, starting from the defaults of T.
template <class T>
[[nodiscard]] T read(const Node& node) {
  T value{};
  type_of<T>().read(node, &value);
  return value;
}

/// Returns the value as a tree: fields in order, unset optionals as null. read() restores the
/// value, doubles to the last bit.
template <class T>
[[nodiscard]] Node to_node(const T& value) {
  return type_of<T>().write(&value);
}

/// Throws ConfigError "[where] epochs must be >= 1, got 0" for the first field that breaks its
/// rule.
template <Options S>
void validate(const S& options, std::string_view where) {
  type_of<S>().check(&options, where, "");
}

/// Returns the keys of the fields, in order.
[[nodiscard]] std::vector<std::string> names_of(std::span<const Field> fields);

/// Returns the keys of an options struct, in order.
template <Options S>
[[nodiscard]] std::vector<std::string> field_names() {
  const S defaults{};
  return names_of(detail::visited(defaults).fields());
}

}  // namespace tare::config
