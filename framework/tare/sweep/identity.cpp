// Identifies runs, and writes their settings.
#include "tare/sweep/identity.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/parts.h"
#include "tare/base/sha256.h"
#include "tare/config/scalar.h"
#include "tare/config/short_forms.h"
#include "tare/search/value_text.h"

namespace tare::sweep {
namespace {

using config::Kind;
using config::Node;

/// Keys sorted, and one spelling of a value: 1e-2 and 0.01, adam and "adam".
void make_canonical(Node& node) {
  for (auto& item : node.items) make_canonical(item);
  for (auto& entry : node.entries) make_canonical(entry.value);
  std::ranges::sort(node.entries, {}, &config::Entry::key);
  if (node.kind != Kind::scalar) return;
  const auto number = node.quoted ? std::nullopt : config::as_number(node.text);
  node = number        ? Node::scalar(config::number_text(*number))
         : node.quoted ? Node::string(node.text)
                       : std::move(node);
}

/// Lists the keys that change where a run goes or how it is done, but not its results.
constexpr std::array kWithout{"name",    "folder",     "device",
                              "workers", "save_every", "save_in_background"};

Node in_lower_case(Node value) {
  value.text = lower_case(std::move(value.text));
  return value;
}

}  // namespace

std::string override_text(const std::string& key, const Node& value) {
  return key + '=' + search::flow_text(value);
}

std::vector<std::string> override_texts(const SweepOptions& sweep,
                                        const search::Settings& settings) {
  std::vector<std::string> all;
  for (const auto& [name, value] : settings.values) {
    const auto alias = std::ranges::find(sweep.origin.aliases, name, &Alias::name);
    if (alias == sweep.origin.aliases.end())
      all.push_back(override_text(name, value));
    else
      all.push_back(override_text(alias->key, alias->lower_case ? in_lower_case(value) : value));
  }
  return all;
}

Identity::Identity(const SweepOptions& sweep) : sweep_(sweep) {
  if (sweep.origin.is_program) return;
  recipe_ = config::parse_file(sweep.recipe);
  for (const auto& setting : override_texts(sweep, sweep.set))
    config::apply_recipe_override(recipe_, setting);
}

Node Identity::program_of(const search::Cell& cell) const {
  Node program = sweep_.origin.configuration;
  for (const auto& key : sweep_.origin.without) program.set(key, {});
  for (const auto& [key, value] : cell.values) program.set(key, value);
  std::erase_if(program.entries,
                [](const config::Entry& entry) { return entry.value.kind == Kind::null; });
  return program;
}

std::string Identity::of(const search::Cell& cell) const {
  if (sweep_.origin.is_program) {
    Node program = program_of(cell);
    make_canonical(program);
    return sha256_hex(config::to_yaml(program));
  }
  Node recipe = recipe_;
  for (const auto& setting : override_texts(sweep_, cell))
    config::apply_recipe_override(recipe, setting);
  std::erase_if(recipe.entries, [](const config::Entry& entry) {
    return std::ranges::find(kWithout, entry.key) != kWithout.end();
  });
  make_canonical(recipe);
  return sha256_hex(config::to_yaml(recipe));
}

}  // namespace tare::sweep
