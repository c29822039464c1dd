// The YAML forms of a recipe's own types, and the places of its values.
#include "tare/recipe/recipe.h"

#include <algorithm>
#include <sstream>

#include "tare/base/error.h"
#include "tare/callback/registry.h"

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

bool operator==(const RecipeOptions& one, const RecipeOptions& other) {
  return config::to_yaml(config::to_node(one)) == config::to_yaml(config::to_node(other));
}

std::string loss_name(const RecipeOptions& recipe) {
  const auto* name = std::get_if<std::string>(&recipe.learner.loss);
  return name ? *name : "";
}

std::vector<std::string> chosen_metrics(const RecipeOptions& recipe) {
  std::vector<std::string> names;
  for (const Metric& metric : recipe.learner.metrics)
    names.push_back(std::holds_alternative<std::string>(metric) ? column_of(metric) : "");
  return names;
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
  if (const config::Node* program = node.find("torchscript")) {
    value.name = "torchscript";
    config::Node own = config::Node::map();
    own.set("file", *program);
    if (const config::Node* trust = node.find("trust")) own.set("trust", *trust);
    std::erase_if(options.entries, [](const config::Entry& entry) {
      return entry.key == "torchscript" || entry.key == "trust";
    });
    options.set("options", std::move(own));
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

void from_node(const config::Node& node, CallbackChoice& value) {
  value = {callbacks::registry().complete(config::read<config::Choice>(node))};
}

config::Node to_node(const CallbackChoice& value) {
  return to_node(static_cast<const config::Choice&>(value));
}

}  // namespace tare
