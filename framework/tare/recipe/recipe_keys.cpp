// Collects the keys of a recipe from its options, and explains them.
#include "tare/recipe/recipe_keys.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

#include "tare/base/error.h"
#include "tare/base/parts.h"
#include "tare/base/terminal.h"
#include "tare/callback/registry.h"
#include "tare/config/node.h"
#include "tare/data/collate.h"
#include "tare/data/datasets.h"
#include "tare/metric/loss.h"
#include "tare/metric/metric.h"
#include "tare/model/registry.h"
#include "tare/recipe/option_facts.h"
#include "tare/recipe/recipe.h"
#include "tare/runtime/device_name.h"
#include "tare/transform/transform.h"

namespace tare {
namespace {

using config::Node;

/// Returns a recipe with `leaf` at the path and nothing else.
Node tree(const std::vector<std::string>& keys, size_t at, Node leaf) {
  if (at == keys.size()) return leaf;
  Node child = tree(keys, at + 1, std::move(leaf));
  if (keys[at] == "N") return Node::sequence({std::move(child)});
  Node node = Node::map();
  node.set(keys[at], std::move(child));
  return node;
}

/// Returns the error of the options for a value that they refuse; unset: they accept it.
std::optional<ConfigError> refusal(const std::string& path, Node leaf) {
  try {
    (void)config::read<RecipeOptions>(tree(parts_of(path, '.'), 0, std::move(leaf)));
    return std::nullopt;
  } catch (const ConfigError& error) {
    return error;
  }
}

/// Returns the keys of a mapping; empty for any other value. An unknown key is refused with all
/// known ones.
std::vector<std::string> keys_in(const std::string& path) {
  Node probe = Node::map();
  probe.set("?", Node());
  const auto error = refusal(path, std::move(probe));
  if (!error || !error->field().ends_with("?")) return {};
  auto keys = parts_of(error->allowed(), ',');
  if (path == "model") keys.insert(keys.begin(), "name");  // in one mapping with its options
  return keys;
}

std::vector<std::string> words_of(const std::string& path, const OptionFacts& facts) {
  const std::string name = path.substr(path.rfind('.') + 1);
  if (path == "loss") return loss_names();
  if (path == "metrics") return metric_names();
  if (name == "callbacks") return callbacks::registry().names();
  if (path == "model.name") return models::names();
  if (path.ends_with("data.name")) return datasets::names();
  if (path.ends_with("data.style")) return {"printed", "written"};
  if (path.ends_with("data.collate")) return collates::registry().names();
  if (path.ends_with("data.transforms")) return transforms::registry().names();
  if (name == "best") {
    std::vector<std::string> figures{"valid_loss", "train_loss"};
    for (const auto& metric : metric_names()) figures.push_back(metric);
    return figures;
  }
  if (path == "device") return runtime::device_names();
  if (name == "micro_batch") return {"auto"};
  if (name == "recompute") return {"none", "all", "auto"};
  if (name == "offload") return {"none", "all"};
  return facts.words;
}

const Node* value_at(const Node& root, const std::string& path) {
  const Node* node = &root;
  for (const auto& key : parts_of(path, '.')) {
    node = key == "N" ? (node->items.empty() ? nullptr : &node->items.front()) : node->find(key);
    if (node == nullptr) return nullptr;
  }
  return node;
}

std::string default_of(const Node& defaults, const std::string& path) {
  if (path == "model.name" || path == "model.classes") return "";  // given, or found in the data
  const Node* node = value_at(defaults, path);
  return node == nullptr ? "" : default_text(*node);
}

/// Texts that are clearer than the default, where the default means little or there is none.
const std::map<std::string, std::string>& examples() {
  static const std::map<std::string, std::string> table{
      {"name", "again"},
      {"device", "cuda:0"},
      {"recompute", "[layer1,layer2]"},
      {"offload", "all"},
      {"precision", "bf16"},
      {"metrics", "[accuracy]"},
      {"export", "model.tare"},
      {"export_weights", "fp8"},
      {"load", "head"},
      {"save", "head"},
      {"lr", "{from: 1e-4, to: 1e-2}"},
      {"freeze_to", "-1"},
      {"epochs", "8"},
      {"size", "64"},
      {"cache", "2GiB"},
      {"images", "images-idx3-ubyte.gz"},
      {"labels", "labels-idx1-ubyte.gz"},
      {"sample_shape", "[1, 28, 28]"},
      {"files", "[train/]"},
      {"target", "price"},
      {"targets", "[cat, dog]"},
      {"columns", "[age, area]"},
      {"omit", "[id]"},
      {"categories", "[zip]"},
      {"numbers", "[price]"},
      {"missing_values", "[unknown]"},
      {"separator", ";"},
      {"valid_files", "[valid.tfrecord]"},
      {"test_files", "[test.tfrecord]"},
      {"shape", "[28, 28]"},
      {"weights", "base.safetensors"},
      {"rename", "{old.: new.}"},
      {"hidden", "[256, 128]"},
      {"prompt", "Once"},
      {"width", "16"},
      {"layers", "4"},
      {"heads", "4"},
      {"style", "written"},
      {"transforms", "[{shift: {pixels: 2}}]"},
      {"classes", "10"},
      {"momentum", "0.9"},
      {"beta2", "0.99"},
      {"eps", "1e-8"},
      {"batch", "64"},
      {"valid_every", "200"},
      {"callbacks", "[{early_stopping: {patience: 3}}]"},
      {"norm", "1.0"},
      {"options", "{depth: 3}"},
      {"value", "0.5"},
      {"tf32", "true"}};
  return table;
}

std::string quoted_for_a_shell(const std::string& text) {
  return text.find_first_of(" {}[]") == std::string::npos ? text : '\'' + text + '\'';
}

std::string example_of(const RecipeKey& key) {
  if (key.type == "a mapping" || key.path == "phases") return "";
  const std::string path = replaced(key.path, ".N.", ".0.");
  if (path.ends_with(".lr.from") || path.ends_with(".lr.to"))  // both ends are needed
    return quoted_for_a_shell(path.substr(0, path.rfind('.')) + "={from: 1e-5, to: 1e-3}");
  const std::string name = path.substr(path.rfind('.') + 1);
  const auto better = examples().find(name);
  std::string value = key.default_value;
  // A range over the layer groups is for a phase, and a recipe's name is not a data set's.
  const bool other_meaning = (name == "name" && path != "name") || path == "optimizer.lr";
  if (better != examples().end() && !other_meaning)
    value = better->second;
  else if (!key.words.empty())
    value = key.words.front() == value && key.words.size() > 1 ? key.words[1] : key.words.front();
  else if (value.empty())
    value = key.type.find("number") == std::string::npos ? name : "1";
  return quoted_for_a_shell(path + '=' + value);
}

/// Returns the text of a key. If the key stands in a phase and in the recipe, that is the text of
/// the phase, if there is one.
const KeyText* text_of(const std::vector<KeyText>& texts, const std::string& path) {
  const auto of = [&](const std::string& wanted) {
    const auto found = std::ranges::find(texts, wanted, &KeyText::path);
    return found == texts.end() ? nullptr : &*found;
  };
  if (const KeyText* text = of(path)) return text;
  constexpr std::string_view kPhase = "phases.N.";
  return path.starts_with(kPhase) ? of(path.substr(kPhase.size())) : nullptr;
}

class Collector {
 public:
  Collector() {
    RecipeOptions options;
    options.phases.emplace_back().data.emplace();
    defaults_ = config::to_node(options);
  }

  void add_all(const std::string& parent) {
    for (const auto& name : keys_in(parent)) {
      const std::string path = parent.empty() ? name : parent + '.' + name;
      add(path);
      add_all(path == "phases" ? "phases.N" : path);
    }
  }
  std::vector<RecipeKey> take() { return std::move(keys_); }

 private:
  void add(const std::string& path) {
    const auto facts = facts_of([&](Node value) { return refusal(path, std::move(value)); });
    RecipeKey key{.path = path, .type = path == "phases" ? "a list" : facts.type};
    if (const auto keys = keys_in(path); !keys.empty() && key.type.find("number") != key.type.npos)
      key.type += ", or a mapping of " + listed(keys);
    key.range = facts.range;
    key.words = words_of(path, facts);
    key.default_value = default_of(defaults_, path);
    if (const KeyText* text = text_of(texts_, path)) {
      key.meaning = text->meaning;
      if (key.default_value.empty() && text->default_value != "-")
        key.default_value = text->default_value;
    }
    key.example = example_of(key);
    keys_.push_back(std::move(key));
  }

  Node defaults_;
  std::vector<KeyText> texts_ = key_texts(kRecipePage);
  std::vector<RecipeKey> keys_;
};

/// Returns the path with N for the number of a phase, also where the number is missing.
std::string with_n(const std::string& path) {
  std::string result;
  bool after_phases = false;
  for (const auto& part : parts_of(path, '.')) {
    const bool number = std::ranges::all_of(part, [](unsigned char c) { return std::isdigit(c); });
    if (after_phases && !number && part != "N") result += ".N";
    result += (result.empty() ? "" : ".") + (number ? "N" : part);
    after_phases = part == "phases" && result == "phases";
  }
  return result;
}

}  // namespace

const std::vector<RecipeKey>& recipe_keys() {
  static const std::vector<RecipeKey> keys = [] {
    Collector collector;
    collector.add_all("");
    return collector.take();
  }();
  return keys;
}

bool is_recipe_key(const std::string& path) {
  return std::ranges::find(recipe_keys(), with_n(path), &RecipeKey::path) != recipe_keys().end();
}

const RecipeKey& recipe_key(const std::string& path) {
  const std::string wanted = with_n(path);
  std::vector<std::string> known, ends;
  for (const auto& key : recipe_keys()) {
    if (key.path == wanted) return key;
    known.push_back(key.path);
    if (key.path.ends_with('.' + wanted)) ends.push_back(key.path);
  }
  if (!ends.empty())
    throw ConfigError("tare explain", "no key of a recipe is named '" + printable(path) +
                                          "' (did you mean " + listed(ends) + "?)");
  throw ConfigError("tare explain", "no key of a recipe is named '" + printable(path) + "'" +
                                        did_you_mean(wanted, known));
}

std::string explanation(const RecipeKey& key, size_t width) {
  std::string text = key.path + '\n';
  const auto line = [&text, width](const std::string& head, const std::string& value) {
    if (!value.empty()) {
      text +=
          "  " + head + std::string(9 - head.size(), ' ') + wrapped(value, width, 11, 11) + '\n';
    }
  };
  std::string words;
  for (const auto& word : key.words) words += (words.empty() ? "" : ", ") + word;
  line("meaning", key.meaning);
  line("type", key.type);
  line("default", key.default_value);
  line("allowed", words.empty() ? key.range : words);
  line("example", key.example.empty() ? "" : "tare run RECIPE " + key.example);
  return text;
}

}  // namespace tare
