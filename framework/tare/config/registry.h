// Registry: an open set of things that a recipe names, each with options of its own.
//
//   Registry<CallbackPtr()> callbacks("callback");
//   callbacks.add<EarlyStoppingOptions>(
//       "early_stopping", "ends a fit that improves no more",
//       [](const EarlyStoppingOptions& o) { return std::make_shared<EarlyStopping>(o); });
//   CallbackPtr callback = callbacks.make(callbacks.complete({.name = "early_stopping"}));
//
// The options of an entry are listed once, by their visit_fields: reading, checking, the completed
// dump and `tare ls` come from that list. Not thread-safe: a program adds its entries before it
// reads a recipe.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tare/config/field.h"

namespace tare::config {

/// Holds the name of an entry and its options. In YAML it is the name alone, or a mapping of the
/// name to the options: `{early_stopping: {patience: 3}}`. A flat choice has the name as its
/// `type`, beside the options: `{type: asha, min_resource: 3}`.
struct Choice {
  std::string name{};          ///< of an entry of the registry
  Node options = Node::map();  ///< all of them, once Registry::complete() has returned the choice
  bool flat = false;           ///< written with its name as `type`, beside the options
  /// Whether name and options are equal, however they are written.
  bool operator==(const Choice& other) const;
};
/// Throws ConfigError for a list and for a mapping of no name or of several.
void from_node(const Node& node, Choice& value);
/// Reads a flat choice; without a type the name of `value` stays. Throws ConfigError for a list.
void from_flat_node(const Node& node, Choice& value);
/// Returns a mapping, flat for a flat choice.
[[nodiscard]] Node to_node(const Choice& value);
/// Returns the name alone for a choice without options, else to_node().
[[nodiscard]] Node to_short_node(const Choice& value);

/// Holds the options that one entry has beside the fields of all entries of its kind, as
/// `options: {beta3: 0.9}` in `{kind: lion, lr: 0.1, options: {beta3: 0.9}}`.
struct OwnOptions {
  Node node = Node::map();  ///< what is given; the entry has defaults for the rest
  /// Whether the options are equal, wherever they stand.
  bool operator==(const OwnOptions& other) const;
};
/// Reads a mapping, or null for none. Whether the entry takes the options is checked where it is
/// made. Throws ConfigError for a scalar and for a list.
void from_node(const Node& node, OwnOptions& value);
[[nodiscard]] Node to_node(const OwnOptions& value);

/// Describes an entry in lists.
struct EntryInfo {
  std::string name{};           ///< as recipes write it
  std::string summary{};        ///< one line: a verb first, no full stop
  Node defaults = Node::map();  ///< every option with its default
};

/// Stands for the options of an entry that has none.
struct NoOptions {};
void visit_fields(auto&, NoOptions&) {}

/// Throws the ConfigError for a name that no entry has, with the names that there are and the
/// nearest one.
[[noreturn]] void refuse_entry(const std::string& kind, const Choice& choice,
                               const std::vector<std::string>& names);

/// Returns the ConfigError for a name given in code: "[loss] no loss is named 'mze' (did you mean
/// "mse"?); allowed: l1, mse; ...". `field`: see ConfigError::field(); empty: `kind`.
[[nodiscard]] ConfigError unknown_entry(std::string_view where, const std::string& kind,
                                        const std::string& name,
                                        const std::vector<std::string>& names,
                                        const std::string& field = {});

template <class Signature>
class Registry;

/// Holds the entries by name; each makes a `Made` from its options and `Args`.
template <class Made, class... Args>
class Registry<Made(Args...)> {
 public:
  /// Makes an empty registry; `kind` is the word for an entry in messages, such as "callback".
  explicit Registry(std::string kind) : kind_(std::move(kind)) {}
  /// Makes a registry of the entries that `fill(Registry&)` adds.
  template <class Fill>
  Registry(std::string kind, const Fill& fill) : Registry(std::move(kind)) {
    fill(*this);
  }
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  /// Adds an entry; one that has the name already is replaced. `make` may throw ConfigError with
  /// the name of the option as its field.
  template <Options O>
  void add(const std::string& name, std::string summary,
           std::function<Made(const O&, Args...)> make) {
    entries_.insert_or_assign(
        name, Entry{{name, std::move(summary), config::to_node(O{})},
                    [](const Node& options) { return config::to_node(config::read<O>(options)); },
                    [make = std::move(make)](const Node& options, Args... args) {
                      return make(config::read<O>(options), std::forward<Args>(args)...);
                    }});
  }
  /// Adds an entry without options.
  void add(const std::string& name, std::string summary, std::function<Made(Args...)> make) {
    add<NoOptions>(name, std::move(summary),
                   [make = std::move(make)](const NoOptions&, Args... args) {
                     return make(std::forward<Args>(args)...);
                   });
  }

  [[nodiscard]] std::vector<std::string> names() const {  ///< returns the names, sorted
    std::vector<std::string> all;
    for (const auto& [name, entry] : entries_) all.push_back(name);
    return all;
  }
  [[nodiscard]] std::vector<EntryInfo> infos() const {  ///< describes all, sorted by name
    std::vector<EntryInfo> all;
    for (const auto& [name, entry] : entries_) all.push_back(entry.info);
    return all;
  }

  /// Whether there is an entry of this name.
  [[nodiscard]] bool contains(const std::string& name) const { return entries_.contains(name); }

  /// Returns the choice with every option that it omits at its default. Throws ConfigError,
  /// with place and nearest name, for an unknown name or option and for a value that is not
  /// allowed.
  [[nodiscard]] Choice complete(const Choice& choice) const {
    return within(choice, [&](const Entry& entry) {
      return Choice{choice.name, entry.complete(choice.options), choice.flat};
    });
  }
  /// Makes the entry of this name with its options at their defaults. Throws as complete().
  [[nodiscard]] Made make(const std::string& name, Args... args) const {
    return make(Choice{.name = name}, std::forward<Args>(args)...);
  }
  /// Makes the thing that is chosen. Throws as complete(), and what its maker throws.
  [[nodiscard]] Made make(const Choice& choice, Args... args) const {
    return within(choice, [&](const Entry& entry) {
      return entry.make(choice.options, std::forward<Args>(args)...);
    });
  }

  /// Makes the entry with options that stand in a field `options` beside its name. Throws as
  /// complete(), with `options` in front of the field.
  [[nodiscard]] Made make(const std::string& name, const OwnOptions& own, Args... args) const {
    try {
      return make(Choice{.name = name, .options = own.node, .flat = true},
                  std::forward<Args>(args)...);
    } catch (const ConfigError& error) {
      throw error.within("options", error.source());
    }
  }

 private:
  struct Entry {
    EntryInfo info{};
    std::function<Node(const Node&)> complete{};
    std::function<Made(const Node&, Args...)> make{};
  };

  /// Calls `action` with the entry; a ConfigError gets the name in front of its field, unless the
  /// choice is flat.
  template <class Action>
  auto within(const Choice& choice, const Action& action) const {
    const auto found = entries_.find(choice.name);
    if (found == entries_.end()) refuse_entry(kind_, choice, names());
    try {
      return action(found->second);
    } catch (const ConfigError& error) {
      const Node* option = choice.options.find(error.field());
      throw error.within(choice.flat ? "" : choice.name,
                         option ? option->source : choice.options.source);
    }
  }

  std::string kind_;
  std::map<std::string, Entry> entries_;
};

}  // namespace tare::config
