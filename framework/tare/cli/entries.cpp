// Collects the entries of all registries with their options, and explains them.
#include "tare/cli/entries.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "tare/base/error.h"
#include "tare/base/familiar_names.h"
#include "tare/base/parts.h"
#include "tare/callback/registry.h"
#include "tare/config/registry.h"
#include "tare/config/scalar.h"
#include "tare/data/collate.h"
#include "tare/data/datasets.h"
#include "tare/launch/executors.h"
#include "tare/metric/loss.h"
#include "tare/metric/metric.h"
#include "tare/model/registry.h"
#include "tare/optim/infos.h"
#include "tare/optim/optimizer.h"
#include "tare/optim/schedule.h"
#include "tare/recipe/option_facts.h"
#include "tare/search/pruners.h"
#include "tare/search/samplers.h"
#include "tare/transform/transform.h"

namespace tare::cli {
namespace {

using config::EntryInfo;
using config::Node;

/// Says how a kind is written in `tare ls`, in a path and as a setting of `tare run`: `before` and
/// `after` stand around "{name: {option: value}}". An empty `before`: it is no such setting.
struct Form {
  const char* list;
  const char* key;
  const char* before = "";
  const char* after = "";
};

using Names = std::vector<std::string>;

/// Returns the names that the text is for, as in "gpt, lstm and mlp: ..."; empty: it is for all.
Names names_before_colon(const std::string& text, const Names& known) {
  const size_t colon = text.find(": ");
  if (colon == std::string::npos) return {};
  std::string list = text.substr(0, colon);
  if (const size_t last = list.find(" and "); last != std::string::npos) list.replace(last, 5, ",");
  Names names = parts_of(list, ',');
  const auto is_known = [&](const std::string& name) {
    return std::ranges::find(known, name) != known.end();
  };
  return std::ranges::all_of(names, is_known) ? names : Names{};
}

/// Returns what the text of a key says of one entry. Of "gpt: number of blocks; lstm: number of
/// layers; 0: the family's" that is "number of blocks; 0: the family's" for gpt. What the text says
/// of "others" is for entries that it does not name.
std::string meaning_for(const std::string& entry, const Names& known, const std::string& text) {
  constexpr std::string_view kOthers = "others: ", kEnd = "; ";
  std::string meaning;
  bool named = false;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(kEnd, at), text.size());
    std::string part = text.substr(at, end - at);
    at = std::min(end + kEnd.size(), text.size());
    const Names names = names_before_colon(part, known);
    const bool of_others = part.starts_with(kOthers);
    const bool of_entry = std::ranges::find(names, entry) != names.end();
    if ((!names.empty() && !of_entry) || (of_others && named)) continue;
    named = named || of_entry;
    if (of_entry || of_others) part.erase(0, part.find(": ") + 2);
    meaning += (meaning.empty() ? "" : std::string(kEnd)) + part;
  }
  return meaning;
}

const std::vector<KeyText>& sweep_texts() {
  static const std::vector<KeyText> texts = key_texts(kSweepsPage);
  return texts;
}

/// Returns the text of an option, or of its key that all entries of the kind share.
std::string meaning_of(const Form& form, const std::string& entry, const std::string& option) {
  static const std::vector<KeyText> texts = [] {
    auto all = key_texts(kRecipePage);
    all.insert(all.end(), sweep_texts().begin(), sweep_texts().end());
    return all;
  }();
  const std::string key = std::string(form.key) + '.';
  for (const auto& path : {key + entry + '.' + option, key + option}) {
    const auto found = std::ranges::find(texts, path, &KeyText::path);
    if (found != texts.end()) return found->meaning;
  }
  return "";
}

/// Returns values for examples, by "entry.option" or by the option alone: what a user would set it
/// to, and not its default.
const std::map<std::string, std::string>& example_values() {
  static const std::map<std::string, std::string> table{{"adamw8bit.min_elements", "1024"},
                                                        {"alpha", "0.4"},
                                                        {"beta", "0.5"},
                                                        {"brightness", "0.4"},
                                                        {"checkpoint", "best-accuracy"},
                                                        {"class_weights", "balanced"},
                                                        {"contrast", "0.4"},
                                                        {"csv_log.file", "epochs.csv"},
                                                        {"decay", "0.99"},
                                                        {"degrees", "20"},
                                                        {"ema.warmup", "100"},
                                                        {"erasing.ratio", "[0.5, 2]"},
                                                        {"erasing.scale", "[0.1, 0.2]"},
                                                        {"erasing.value", "0.5"},
                                                        {"every", "10"},
                                                        {"factor", "0.5"},
                                                        {"hue", "0.05"},
                                                        {"ignore_index", "255"},
                                                        {"images", "8"},
                                                        {"jsonl_log.file", "run.jsonl"},
                                                        {"k", "3"},
                                                        {"label_smoothing", "0.1"},
                                                        {"last", "5"},
                                                        {"levels", "11"},
                                                        {"magnitude", "5"},
                                                        {"min_delta", "0.001"},
                                                        {"min_lr", "1e-5"},
                                                        {"minutes", "30"},
                                                        {"monitor", "accuracy"},
                                                        {"multiple", "8"},
                                                        {"name", "kept"},
                                                        {"operations", "3"},
                                                        {"patience", "3"},
                                                        {"peak_tflops", "100"},
                                                        {"pixels", "4"},
                                                        {"positive_weight", "3"},
                                                        {"probability", "0.25"},
                                                        {"prompt", "Once"},
                                                        {"sample_text.length", "500"},
                                                        {"saturation", "0.2"},
                                                        {"seed", "7"},
                                                        {"start", "0.5"},
                                                        {"steps_log.file", "losses.csv"},
                                                        {"stop_file.file", "end"},
                                                        {"temperature", "0.5"},
                                                        {"tensorboard.folder", "events"},
                                                        {"threshold", "0.5"},
                                                        {"top_k", "20"},
                                                        {"zoom", "0.2"}};
  return table;
}

/// Returns numbers that are not the default, for the option of an entry of a program.
std::vector<std::string> other_numbers(const RecipeKey& key) {
  if (key.type.find("number") == std::string::npos || key.type.starts_with("a list")) return {};
  const double number = config::as_number(key.default_value).value_or(0);
  if (number == 0) return {"1"};
  return {config::number_text(number * 2), config::number_text(number / 2)};
}

/// Returns a value for the example of an option; empty: none is known that differs from its
/// default and that `accepts` takes.
std::string example_value(const std::string& entry, const std::string& option, const RecipeKey& key,
                          const std::function<bool(const std::string&)>& accepts) {
  std::vector<std::string> candidates;
  for (const std::string& name : {entry + '.' + option, option})
    if (const auto found = example_values().find(name); found != example_values().end())
      candidates.push_back(found->second);
  candidates.insert(candidates.end(), key.words.begin(), key.words.end());
  const auto numbers = other_numbers(key);
  candidates.insert(candidates.end(), numbers.begin(), numbers.end());
  for (const std::string& value : candidates)
    if (value != key.default_value && accepts(value)) return value;
  return "";
}

std::string example_of(const Form& form, const std::string& entry, const std::string& option,
                       const std::string& value) {
  if (*form.before == 0 || value.empty()) return "";
  return std::string("'") + form.before + '{' + entry + ": {" + option + ": " + value + "}}" +
         form.after + "'";
}

/// Describes an option that the entry itself reads.
template <class Registry>
RecipeKey own_option(const Form& form, const Registry& all, const std::string& entry,
                     const config::Entry& option) {
  const auto refusal = [&](Node value) -> std::optional<ConfigError> {
    config::Choice choice{.name = entry};
    choice.options.set(option.key, std::move(value));
    try {
      (void)all.complete(choice);
      return std::nullopt;
    } catch (const ConfigError& error) {
      return error;
    }
  };
  OptionFacts facts = facts_of(refusal);
  RecipeKey key{.path = std::string(form.key) + '.' + entry + '.' + option.key,
                .meaning = meaning_for(entry, all.names(), meaning_of(form, entry, option.key)),
                .type = std::move(facts.type),
                .default_value = default_text(option.value),
                .range = std::move(facts.range),
                .words = std::move(facts.words)};
  if (refusal(option.value)) key.default_value.clear();  // it must be given, as a size
  const auto accepts = [&](const std::string& value) {
    return !refusal(config::parse_text(value, "example"));
  };
  key.example = example_of(form, entry, option.key, example_value(entry, option.key, key, accepts));
  return key;
}

/// Describes an option that is a field of a struct which all entries share: the key of a recipe at
/// `path`, with the entry's default.
RecipeKey shared_option(const Form& form, const std::string& path, const NamedEntry& entry,
                        const Names& known, const config::Entry& option) {
  RecipeKey key = recipe_key(path + '.' + option.key);
  key.meaning = meaning_for(entry.name, known, key.meaning);
  key.path = std::string(form.key) + '.' + entry.name + '.' + option.key;
  const std::string own = default_text(option.value);
  if (!own.empty()) key.default_value = own;
  key.example = replaced(key.example, "{kind: cosine,", "{kind: " + entry.name + ',');
  return key;
}

/// Whether an option of limited range has no default, so that it must be given.
bool needs_options(const NamedEntry& entry) {
  return std::ranges::any_of(entry.options, [](const RecipeKey& option) {
    return option.default_value.empty() && !option.range.empty() &&
           !option.type.starts_with("a list");
  });
}

/// Returns a kind whose entries read all of their options themselves.
template <class Registry>
EntryKind kind_of(const Form& form, const Registry& all) {
  EntryKind kind{.list = form.list, .key = form.key};
  for (const auto& info : all.infos()) {
    NamedEntry entry{.name = info.name, .summary = info.summary};
    for (const auto& option : info.defaults.entries)
      entry.options.push_back(own_option(form, all, info.name, option));
    if (needs_options(entry))  // one of them alone is no setting
      for (auto& option : entry.options) option.example.clear();
    kind.entries.push_back(std::move(entry));
  }
  return kind;
}

/// Returns a kind whose entries share a struct that stands at `path` of a recipe, given with the
/// name of an entry, and may have `options` of their own.
template <class Registry, class Path>
EntryKind sharing_kind_of(const Form& form, const Registry& all,
                          const std::vector<EntryInfo>& infos, const Path& path) {
  EntryKind kind{.list = form.list, .key = form.key};
  for (const auto& info : infos) {
    NamedEntry entry{.name = info.name, .summary = info.summary};
    for (const auto& option : info.defaults.entries) {
      if (option.key != "options") {
        entry.options.push_back(shared_option(form, path(info.name), entry, all.names(), option));
        continue;
      }
      for (const auto& own : option.value.entries)
        entry.options.push_back(own_option(form, all, info.name, own));
    }
    kind.entries.push_back(std::move(entry));
  }
  return kind;
}

Node data_options(const std::string& name) {
  const Node standard = config::to_node(DataOptions{});
  Node options = Node::map();
  for (const auto& field : datasets::fields_of(name)) options.set(field, *standard.find(field));
  if (options.find("style")) options.set("style", Node::string(GeneratedDigits{}.style));
  return options;
}

/// Lists what a recipe can set: an entry of a program that has options of its own too gets none of
/// them there.
std::vector<EntryInfo> data_infos() {
  std::vector<EntryInfo> all = datasets::registry().infos();
  for (auto& info : all) info.defaults = data_options(info.name);
  return all;
}

/// The classes have no default here: a recipe counts them in its data.
std::vector<EntryInfo> model_infos() {
  std::vector<EntryInfo> all = models::infos();
  for (auto& info : all) info.defaults.set("classes", Node());
  return all;
}

EntryKind schedules_kind() {
  return sharing_kind_of({"schedules", "schedule"}, schedules::registry(), schedules::infos(),
                         [](const std::string& name) {
                           const std::string path = "phases.N.schedule";
                           return name == "one_cycle" ? path + ".one_cycle" : path;
                         });
}

const EntryKind* find_kind(const std::vector<EntryKind>& kinds, const std::string& word) {
  const auto found = std::ranges::find_if(
      kinds, [&](const EntryKind& kind) { return kind.key == word || kind.list == word; });
  return found == kinds.end() ? nullptr : &*found;
}

std::string explanation_of(const EntryKind& kind, const NamedEntry& entry, size_t width) {
  std::string text =
      explanation({.path = kind.key + '.' + entry.name, .meaning = entry.summary}, width);
  for (const auto& option : entry.options) text += explanation(option, width);
  return text;
}

[[noreturn]] void refuse(const std::string& what, const std::string& word,
                         const std::vector<std::string>& known) {
  throw ConfigError("tare explain",
                    what + " named '" + printable(word) + "'" + did_you_mean(word, known) +
                        (known.empty() ? "; it has none" : "; there are " + listed(known)));
}

std::string explanation_of_option(const EntryKind& kind, const NamedEntry& entry,
                                  const std::string& option, size_t width) {
  std::vector<std::string> known;
  for (const auto& key : entry.options) {
    if (option_name(key) == option) return explanation(key, width);
    known.push_back(option_name(key));
  }
  refuse(kind.key + '.' + entry.name + " has no option", option, known);
}

/// Explains an option that entries of programs read themselves, by its path in a recipe: of
/// "model.options.depth" that of each model with a depth of its own.
std::optional<std::string> explained_own_option(const EntryKind& kind, const std::string& option,
                                                size_t width) {
  std::string text;
  for (const auto& entry : kind.entries)
    for (const auto& key : entry.options)
      if (option_name(key) == option && !is_recipe_key(kind.key + '.' + option))
        text += explanation(key, width);
  return text.empty() ? std::nullopt : std::optional(text);
}

/// Explains `parts[0]`, the word of a kind, with the entry and the option that follow it.
std::optional<std::string> explained(const EntryKind& kind, const std::vector<std::string>& parts,
                                     size_t width) {
  std::vector<std::string> known;
  if (parts.size() == 3 && parts[1] == "options")
    if (auto text = explained_own_option(kind, parts[2], width)) return text;
  for (const auto& entry : kind.entries) {
    if (entry.name == parts[1])
      return parts.size() == 2 ? explanation_of(kind, entry, width)
                               : explanation_of_option(kind, entry, parts[2], width);
    known.push_back(entry.name);
  }
  if (parts.size() == 3) refuse("there is no " + kind.key, parts[1], known);
  return std::nullopt;
}

/// Returns the parts from the word of the kind on: "callbacks.x.y" of "phases.0.callbacks.x.y".
std::vector<std::string> from_kind(const std::string& path) {
  std::vector<std::string> parts = parts_of(path, '.');
  if (parts.size() > 2 && parts[0] == "phases") parts.erase(parts.begin(), parts.begin() + 2);
  if (parts.size() > 2 && parts[0] == "data" && (parts[1] == "transforms" || parts[1] == "collate"))
    parts.erase(parts.begin());
  return parts;
}

/// Explains the options of this name of all entries, where no key of a recipe ends in it.
std::string explained_options(const std::vector<EntryKind>& kinds, const std::string& name,
                              size_t width) {
  for (const auto& key : recipe_keys())
    if (option_name(key) == name) return {};
  std::string text;
  std::set<std::string> seen;  // entries may share an option
  for (const auto& kind : kinds)
    for (const auto& entry : kind.entries)
      for (const auto& option : entry.options)
        if (option_name(option) == name && seen.insert(option.path).second)
          text += explanation(option, width);
  return text;
}

/// Explains every entry of the name or the options of the name, or throws the ConfigError that
/// names the likeliest one. Unset: a key of a recipe is likelier.
std::optional<std::string> explained_name(const std::vector<EntryKind>& kinds,
                                          const std::string& name, size_t width) {
  if (const EntryKind* kind = find_kind(kinds, name))
    throw ConfigError("tare explain", "'" + name + "' is a kind of entries: `tare ls " +
                                          kind->list + "` lists them, and `tare explain " +
                                          kind->key + ".NAME` explains one");
  std::string text;
  Names entries, known;
  for (const auto& kind : kinds)
    for (const auto& entry : kind.entries) {
      if (entry.name == name) text += explanation_of(kind, entry, width);
      entries.push_back(entry.name);
    }
  if (text.empty()) text = explained_options(kinds, name, width);
  if (!text.empty()) return text;
  for (const auto& key : sweep_texts()) entries.push_back(key.path);
  for (const auto& key : recipe_keys()) known.push_back(key.path);
  known.insert(known.end(), entries.begin(), entries.end());
  const std::string likely = familiar(name, known);
  if (std::ranges::find(entries, likely.empty() ? nearest(name, known) : likely) == entries.end())
    return std::nullopt;
  throw ConfigError("tare explain", "no key of a recipe or sweep and no entry is named '" +
                                        printable(name) + "'" + did_you_mean(name, entries));
}

}  // namespace

std::vector<EntryKind> entry_kinds() {
  const auto at = [](const char* path) { return [path](const std::string&) { return path; }; };
  return {kind_of({"callbacks", "callbacks", "callbacks=[", "]"}, callbacks::registry()),
          kind_of({"collates", "collate", "data.collate="}, collates::registry()),
          sharing_kind_of({"datasets", "data"}, datasets::registry(), data_infos(), at("data")),
          kind_of({"executors", "executor"}, launch::executors::registry()),
          kind_of({"losses", "loss", "loss="}, losses::registry()),
          kind_of({"metrics", "metrics", "metrics=[", "]"}, metrics::registry()),
          sharing_kind_of({"models", "model"}, models::registry(), model_infos(), at("model")),
          sharing_kind_of({"optimizers", "optimizer"}, optimizers::registry(), optimizers::infos(),
                          at("optimizer")),
          kind_of({"pruners", "pruner"}, search::pruners::registry()),
          kind_of({"samplers", "method"}, search::samplers::registry()),
          schedules_kind(),
          kind_of({"transforms", "transforms", "data.transforms=[", "]"}, transforms::registry())};
}

std::string option_name(const RecipeKey& option) {
  return option.path.substr(option.path.rfind('.') + 1);
}

std::optional<std::string> sweep_key_explanation(const std::string& path, size_t width) {
  std::string text;
  const auto add = [&](const KeyText& key) {
    text += explanation({.path = key.path + " (of a sweep)",
                         .meaning = key.meaning,
                         .default_value = key.default_value == "-" ? "" : key.default_value},
                        width);
  };
  for (const auto& key : sweep_texts())
    if (key.path == path || key.path.starts_with(path + '.')) add(key);
  const auto whole =
      std::ranges::find(sweep_texts(), path.substr(0, path.rfind('.')), &KeyText::path);
  if (text.empty() && whole != sweep_texts().end() && whole->default_value.starts_with('{'))
    add(*whole);
  return text.empty() ? std::nullopt : std::optional(text);
}

std::optional<std::string> entry_explanation(const std::string& path, size_t width) {
  const std::vector<std::string> parts = from_kind(path);
  if (parts.empty() || parts.size() > 3) return std::nullopt;
  const auto kinds = entry_kinds();
  const EntryKind* kind = find_kind(kinds, parts[0]);
  if (kind != nullptr && parts.size() > 1)
    if (auto text = explained(*kind, parts, width)) return text;
  if (kind == nullptr || parts.size() > 1 || kind->key == path)
    if (auto text = sweep_key_explanation(path, width)) return text;
  return parts.size() == 1 ? explained_name(kinds, parts[0], width) : std::nullopt;
}

}  // namespace tare::cli
