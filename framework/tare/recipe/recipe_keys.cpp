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
  if (path == "stages") return {"auto"};
  if (name == "micro_batch") return {"auto"};
  if (path == "phases.N.lr") return {"find"};
  if (name == "recompute") return {"none", "all", "auto"};
  if (name == "offload") return {"none", "all"};
  return facts.words;
}

/// Returns the range of the values, or what the key takes beside its words.
std::string range_of(const std::string& path, const OptionFacts& facts) {
  const std::string name = path.substr(path.rfind('.') + 1);
  if (path == "device") return "cuda:N";
  if (path == "stages") return "devices, each with or without @ and a layer group";
  if (name == "recompute" || name == "offload") return "a list of blocks";
  return facts.range;
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

/// Returns values for examples, by the path of a key or by its last name: what a user would set it
/// to, and not its default.
const std::map<std::string, std::string>& examples() {
  static const std::map<std::string, std::string> table{
      {"name", "again"},
      {"phases.0.name", "head"},
      {"seed", "7"},
      {"device", "cuda:0"},
      {"stages", "[cuda:0, cuda:1]"},
      {"folder", "experiments"},
      {"data.folder", "pictures"},
      {"micro_batch", "16"},
      {"recompute", "[layer1,layer2]"},
      {"offload", "all"},
      {"precision", "bf16"},
      {"class_sampling", "{cat: 3, dog: 0.5}"},
      {"workers", "4"},
      {"loss", "{cross_entropy: {label_smoothing: 0.1}}"},
      {"metrics", "[accuracy, f1]"},
      {"optimizer.lr", "3e-4"},
      {"weight_decay", "0.05"},
      {"data_parallel.bucket_mib", "50"},
      {"data_parallel.find_unused", "true"},
      {"data_parallel.static_graph", "true"},
      {"data_parallel.sync_batch_norm", "true"},
      {"data_parallel.shard", "optimizer"},
      {"data_parallel.compression", "fp16"},
      {"export", "model.tare"},
      {"export_weights", "fp8"},
      {"export_formats", "[onnx, pt2]"},
      {"export_fold_norms", "true"},
      {"export_opset", "23"},
      {"export_tolerance", "0.01"},
      {"load", "head"},
      {"save", "head"},
      {"save_every", "100"},
      {"lr", "{from: 1e-4, to: 1e-2}"},
      {"lr.find.start", "1e-6"},
      {"lr.find.end", "1"},
      {"lr.find.steps", "200"},
      {"freeze_to", "-1"},
      {"epochs", "8"},
      {"steps", "500"},
      {"samples", "10000"},
      {"size", "64"},
      {"count", "1000"},
      {"cache", "2GiB"},
      {"channels", "1"},
      {"context", "256"},
      {"tokenizer", "bytes"},
      {"vocabulary", "1024"},
      {"length", "512"},
      {"file", "table.csv"},
      {"images", "images-idx3-ubyte.gz"},
      {"labels", "labels-idx1-ubyte.gz"},
      {"input", "pixels"},
      {"label", "class"},
      {"sample_shape", "[1, 28, 28]"},
      {"files", "[train/]"},
      {"num_parallel_reads", "4"},
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
      {"train", "0.7"},
      {"valid", "0.1"},
      {"folds", "5"},
      {"train_batches", "20"},
      {"valid_batches", "5"},
      {"overfit", "1"},
      {"shape", "[28, 28]"},
      {"weights", "base.safetensors"},
      {"rename", "{old.: new.}"},
      {"hidden", "[256, 128]"},
      {"prompt", "Once"},
      {"width", "16"},
      {"layers", "4"},
      {"heads", "4"},
      {"dropout", "0.1"},
      {"style", "written"},
      {"transforms", "[{shift: {pixels: 2}}]"},
      {"classes", "10"},
      {"momentum", "0.8"},
      {"beta2", "0.98"},
      {"eps", "1e-7"},
      {"batch", "64"},
      {"valid_every", "200"},
      {"callbacks", "[{early_stopping: {patience: 3}}]"},
      {"norm", "1.0"},
      {"options", "{depth: 3}"},
      {"value", "0.5"},
      {"tf32", "true"},
      {"div", "10"},
      {"pct_start", "0.25"},
      {"final_div", "1000"},
      {"momentum_start", "0.9"},
      {"momentum_lowest", "0.8"}};
  return table;
}

/// Returns whole settings for keys that need another one beside them. $ stands for what is before
/// the last name of the key.
const std::map<std::string, std::string>& whole_examples() {
  static const std::map<std::string, std::string> table{
      {"data.test", "$.valid=0.1 $.test=0.1"},
      {"data.fold", "$.folds=5 $.fold=1"},
      {"duration.minutes", "'$={steps: 500, minutes: 10}'"},
      {"lr.from", "'$={from: 1e-5, to: 1e-3}'"},
      {"lr.to", "'$={from: 1e-5, to: 1e-3}'"},
      {"schedule.warmup", "'$={kind: cosine, warmup: 0.1}'"},
      {"schedule.final_factor", "'$={kind: cosine, final_factor: 0.1}'"},
      {"momentum.warmup", "'$={kind: cosine, warmup: 0.1}'"},
      {"momentum.final_factor", "'$={kind: cosine, final_factor: 0.5}'"},
      {"beta2.warmup", "'$={kind: cosine, warmup: 0.1}'"},
      {"beta2.final_factor", "'$={kind: cosine, final_factor: 0.5}'"},
      {"weight_decay.warmup", "'$={kind: cosine, warmup: 0.1}'"},
      {"weight_decay.final_factor", "'$={kind: cosine, final_factor: 0.5}'"}};
  return table;
}

std::string quoted_for_a_shell(const std::string& text) {
  return text.find_first_of(" {}[];|") == std::string::npos ? text : '\'' + text + '\'';
}

/// Returns the text for the longest end of the path that the table has; null: none.
const std::string* text_for(const std::map<std::string, std::string>& table, std::string path) {
  for (;;) {
    if (const auto found = table.find(path); found != table.end()) return &found->second;
    const size_t dot = path.find('.');
    if (dot == std::string::npos) return nullptr;
    path.erase(0, dot + 1);
  }
}

std::string example_of(const RecipeKey& key) {
  if (key.type == "a mapping" || key.path == "phases") return "";
  const std::string path = replaced(key.path, ".N.", ".0.");
  if (const std::string* whole = text_for(whole_examples(), path))
    return replaced(*whole, "$", path.substr(0, path.rfind('.')));
  const std::string name = path.substr(path.rfind('.') + 1);
  const bool is_choice = name == "name" && !key.words.empty();  // a name of an entry, not of a run
  const std::string* better = is_choice ? nullptr : text_for(examples(), path);
  const auto other = std::ranges::find_if(
      key.words, [&](const std::string& word) { return word != key.default_value; });
  std::string value = key.type.find("number") == std::string::npos ? name : "1";
  if (better)
    value = *better;
  else if (other != key.words.end())
    value = *other;
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
    key.words = words_of(path, facts);
    key.range = range_of(path, facts);
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

std::string allowed_text(const RecipeKey& key) {
  if (key.words.empty()) return key.range;
  constexpr std::string_view kMustBe = "must be ";
  const bool of_numbers = key.range.starts_with(kMustBe);
  std::string text;
  for (const auto& word : key.words) text += (text.empty() ? "" : ", ") + word;
  if (key.range.empty()) return text;
  return text + ", or " + (of_numbers ? "a number " + key.range.substr(kMustBe.size()) : key.range);
}

std::string explanation(const RecipeKey& key, size_t width) {
  std::string text = key.path + '\n';
  const auto line = [&text, width](const std::string& head, const std::string& value) {
    if (!value.empty()) {
      text +=
          "  " + head + std::string(9 - head.size(), ' ') + wrapped(value, width, 11, 11) + '\n';
    }
  };
  line("meaning", key.meaning);
  line("type", key.type);
  line("default", key.default_value);
  line("allowed", allowed_text(key));
  line("example", key.example.empty() ? "" : "tare run RECIPE " + key.example);
  return text;
}

}  // namespace tare
