// The YAML forms of a recipe's own types, and the places of its values.
#include "tare/recipe/recipe.h"

#include <algorithm>
#include <sstream>

#include "tare/base/error.h"
#include "tare/callback/registry.h"
#include "tare/metric/loss.h"

namespace tare {
namespace {

const config::Node* child(const config::Node& node, const std::string& key) {
  if (node.kind != config::Kind::sequence) return node.find(key);
  const size_t index = std::stoul(key);
  return index < node.items.size() ? &node.items[index] : nullptr;
}

}  // namespace

RecipeFile::RecipeFile(config::Node root)
    : root_(std::make_shared<const config::Node>(std::move(root))) {}

std::pair<const config::Node*, bool> RecipeFile::find(const std::string& path) const {
  const config::Node* node = root_.get();
  std::istringstream keys(path);
  for (std::string key; std::getline(keys, key, '.');) {
    const config::Node* next = child(*node, key);
    if (!next) return {node, false};
    node = next;
  }
  return {node, true};
}

Source RecipeFile::place(const std::string& path) const {
  return root_ ? find(path).first->source : Source{};
}

bool RecipeFile::has(const std::string& path) const {
  if (!root_) return false;
  const auto [node, is_value] = find(path);
  return is_value && node->kind != config::Kind::null;
}

int64_t default_batch(int64_t training_samples) {
  constexpr int64_t kLeast = 8, kMost = 128, kSteps = 12;
  int64_t batch = kMost;
  while (batch > kLeast && batch * kSteps > training_samples) batch /= 2;
  return std::max<int64_t>(1, std::min(batch, training_samples));
}

void from_node(const config::Node& node, ModelChoice& value) {
  config::Node options = node;
  if (const config::Node* classes = node.find("classes");
      classes && (classes->kind == config::Kind::null ||
                  (classes->kind == config::Kind::scalar && classes->text == "auto"))) {
    value.options.classes = 0;
    std::erase_if(options.entries,
                  [](const config::Entry& entry) { return entry.key == "classes"; });
  }
  if (const config::Node* name = node.find("name")) {
    value.name = config::read<std::string>(*name);
    std::erase_if(options.entries, [](const config::Entry& entry) { return entry.key == "name"; });
  }
  config::read_into(options, value.options);
}

config::Node to_node(const ModelChoice& value) {
  config::Node node = config::Node::map();
  node.set("name", config::Node::string(value.name));
  for (auto& entry : config::to_node(value.options).entries) node.set(entry.key, entry.value);
  if (value.options.classes == 0) node.set("classes", config::Node::string("auto"));
  return node;
}

void from_node(const config::Node& node, LossChoice& value) {
  LossChoice read;
  from_node(node, static_cast<config::Choice&>(read));
  const auto& all = losses::registry();
  if (all.contains(read.name)) {
    const config::Choice complete = all.complete(read);
    // Options at their defaults are as good as none.
    read.options =
        complete == all.complete({.name = read.name}) ? config::Node::map() : complete.options;
  }
  value = std::move(read);
}

config::Node to_node(const LossChoice& value) {
  const auto& all = losses::registry();
  if (all.contains(value.name) && all.complete(value) == all.complete({.name = value.name}))
    return config::Node::string(value.name);
  return config::to_short_node(value);
}

void from_node(const config::Node& node, CallbackChoice& value) {
  value = {callbacks::registry().complete(config::read<config::Choice>(node))};
}

config::Node to_node(const CallbackChoice& value) {
  return to_node(static_cast<const config::Choice&>(value));
}

void from_node(const config::Node& node, MicroBatch& value) {
  if (node.kind == config::Kind::scalar && node.text == "auto") {
    value.samples.reset();
    return;
  }
  try {
    value.samples = config::read<int64_t>(node);
  } catch (const ConfigError&) {
    throw ConfigError(node.source, "", "must be auto or a number of samples", "",
                      config::describe(node));
  }
}

config::Node to_node(const MicroBatch& value) {
  return value.samples ? config::to_node(*value.samples) : config::Node::string("auto");
}

void from_node(const config::Node& node, BlockNames& value) {
  if (node.kind == config::Kind::scalar) {
    if (node.text != "all" && node.text != "auto" && node.text != "none")
      throw ConfigError(node.source, "",
                        "must be all, none or a list of names; for recompute also auto", "",
                        config::describe(node));
    value.modules.clear();
    if (node.text != "none") value.modules.push_back(node.text);
    return;
  }
  value.modules = config::read<std::vector<std::string>>(node);
}

config::Node to_node(const BlockNames& value) {
  if (value.modules.empty()) return config::Node::string("none");
  if (value.modules.size() == 1 &&
      (value.modules.front() == "all" || value.modules.front() == "auto"))
    return config::Node::string(value.modules.front());
  return config::to_node(value.modules);
}

}  // namespace tare
