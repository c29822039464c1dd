// Walks the recipes of several runs at the same time, so that each row has one form.
#include "tare/report/compared_settings.h"

#include <algorithm>
#include <functional>
#include <list>
#include <utility>

#include "tare/config/node.h"

namespace tare::report {
namespace {

using config::Kind;
using config::Node;

constexpr const char* kPhases = "phases";
constexpr const char* kOptions = "options";

/// Holds the values of the runs at one path; nullptr for a run without one.
using Values = std::vector<const Node*>;

bool is_kind(const Node* value, Kind kind) { return value && value->kind == kind; }

std::string text_of(const Node& value) {
  return value.kind == Kind::scalar ? value.text : config::flow_text(value);
}

/// Returns the keys of all mappings among the values, each once.
std::vector<std::string> keys_of(const Values& values) {
  std::vector<std::string> keys;
  for (const Node* value : values) {
    if (!is_kind(value, Kind::map)) continue;
    for (const auto& entry : value->entries)
      if (std::ranges::find(keys, entry.key) == keys.end()) keys.push_back(entry.key);
  }
  return keys;
}

/// Whether two items of lists have the same keys, or none.
bool have_same_keys(const Node& a, const Node& b) {
  return a.kind == b.kind &&
         std::ranges::equal(a.entries, b.entries, {}, &config::Entry::key, &config::Entry::key);
}

/// Whether the runs that have a value have lists with mappings, whose items have the same keys.
bool are_matching_lists(const Values& values) {
  const auto first = std::ranges::find_if(values, [](const Node* value) { return value; });
  if (first == values.end() || !is_kind(*first, Kind::sequence)) return false;
  return std::ranges::any_of((*first)->items,
                             [](const Node& item) { return item.kind == Kind::map; }) &&
         std::ranges::all_of(values, [&](const Node* value) {
           return !value || (value->kind == Kind::sequence &&
                             std::ranges::equal(value->items, (*first)->items, have_same_keys));
         });
}

class SettingRows {
 public:
  explicit SettingRows(const OwnDefaults& own_defaults) : own_defaults_(own_defaults) {}

  /// Adds what differs at a path and below it. `standard`: the default; nullptr: there is none.
  void walk(const std::string& path, const Values& values, const Node* standard) {
    if (path == kPhases)
      phases(values, standard);
    else if (are_mappings(values, standard))
      entries(path, values, standard);
    else if (are_matching_lists(values))
      items(path, values);
    else
      add(path, values, standard);
  }
  [[nodiscard]] std::vector<ComparedRow> take() {
    std::ranges::sort(rows_, {}, &ComparedRow::name);
    return std::move(rows_);
  }

 private:
  /// Whether the values are mappings with a key at least. One that is null stands for none, where
  /// the default is a mapping, as the data of a phase.
  [[nodiscard]] static bool are_mappings(const Values& values, const Node* standard) {
    const bool may_be_null = is_kind(standard, Kind::map);
    return !keys_of(values).empty() && std::ranges::all_of(values, [&](const Node* value) {
      return !value || value->kind == Kind::map || (may_be_null && value->kind == Kind::null);
    });
  }

  void entries(const std::string& path, const Values& values, const Node* standard) {
    for (const std::string& key : keys_of(values)) {
      if (path.empty() && (key == "name" || key == "folder")) continue;
      const Node* of_key = standard ? standard->find(key) : nullptr;
      Values below;
      for (const Node* value : values) {
        const Node* found = value ? value->find(key) : nullptr;
        // A recipe of another version may lack a key.
        below.push_back(!found && is_kind(value, Kind::map) ? of_key : found);
      }
      if (key == kOptions) complete(path.substr(path.rfind('.') + 1), values, below);
      walk(path.empty() ? key : path + '.' + key, below, of_key);
    }
  }

  /// Adds to the options of each choice, such as an optimizer, the defaults of those that another
  /// run sets.
  void complete(const std::string& choice, const Values& choices, Values& options) {
    if (!own_defaults_) return;
    const std::vector<std::string> keys = keys_of(options);
    for (size_t run = 0; run < options.size(); ++run) {
      if (!is_kind(options[run], Kind::map)) continue;
      const Node* kind = choices[run]->find("kind");
      if (!kind) kind = choices[run]->find("name");
      if (!is_kind(kind, Kind::scalar)) continue;
      const Node defaults = own_defaults_(choice, kind->text);
      Node& completed = completed_.emplace_back(*options[run]);
      for (const std::string& key : keys)
        if (const Node* value = defaults.find(key); value && !completed.find(key))
          completed.set(key, *value);
      options[run] = &completed;
    }
  }

  void items(const std::string& path, const Values& values) {
    size_t most = 0;
    for (const Node* value : values)
      if (value) most = std::max(most, value->items.size());
    for (size_t i = 0; i < most; ++i)
      walk(path + '.' + std::to_string(i), items_at(values, i), nullptr);
  }

  /// The first of the phases with all defaults stands for every phase.
  void phases(const Values& values, const Node* standard) {
    std::vector<std::string> counts;
    size_t most = 0;
    for (const Node* value : values) {
      const size_t count = is_kind(value, Kind::sequence) ? value->items.size() : 0;
      counts.push_back(value ? std::to_string(count) : kNoSetting);
      most = std::max(most, count);
    }
    add(kPhases, std::move(counts));
    const bool has_one = is_kind(standard, Kind::sequence) && !standard->items.empty();
    for (size_t i = 0; i < most; ++i)
      walk(std::string(kPhases) + '.' + std::to_string(i), items_at(values, i),
           has_one ? &standard->items.front() : nullptr);
  }

  [[nodiscard]] static Values items_at(const Values& values, size_t place) {
    Values items;
    for (const Node* value : values)
      items.push_back(is_kind(value, Kind::sequence) && place < value->items.size()
                          ? &value->items[place]
                          : nullptr);
    return items;
  }

  void add(const std::string& path, const Values& values, const Node* standard) {
    if (says_nothing(values, standard)) return;
    std::vector<std::string> texts;
    for (const Node* value : values) texts.push_back(value ? text_of(*value) : kNoSetting);
    add(path, std::move(texts));
  }
  void add(const std::string& path, std::vector<std::string> texts) {
    if (std::ranges::adjacent_find(texts, std::not_equal_to()) != texts.end())
      rows_.push_back({.name = path, .texts = std::move(texts)});
  }

  /// Whether some runs lack the setting, and the others say no more by it.
  [[nodiscard]] static bool says_nothing(const Values& values, const Node* standard) {
    const auto is_silent = [&](const Node* value) {
      return !value || value->kind == Kind::null || text_of(*value).empty() ||
             (standard && text_of(*value) == text_of(*standard));
    };
    return std::ranges::find(values, nullptr) != values.end() &&
           std::ranges::all_of(values, is_silent);
  }

  const OwnDefaults& own_defaults_;
  std::list<Node> completed_;  // to which Values refer
  std::vector<ComparedRow> rows_;
};

Node parsed(const std::string& recipe) {
  return recipe.empty() ? Node() : config::parse_text(recipe, "recipe.yaml");
}

}  // namespace

std::vector<ComparedRow> compared_settings(const std::vector<std::string>& recipes,
                                           const std::string& defaults,
                                           const OwnDefaults& own_defaults) {
  std::list<Node> roots;
  Values values;
  for (const std::string& recipe : recipes) {
    const Node& root = roots.emplace_back(parsed(recipe));
    values.push_back(root.kind == Kind::null ? nullptr : &root);
  }
  const Node standard = parsed(defaults);
  SettingRows rows(own_defaults);
  if (!keys_of(values).empty()) rows.walk("", values, &standard);
  return rows.take();
}

}  // namespace tare::report
