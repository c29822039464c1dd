// Reads and checks the options of a pruner.
#include "tare/search/pruner_options.h"

#include "tare/base/error.h"
#include "tare/config/node.h"
#include "tare/config/scalar.h"

namespace tare::search {

using config::Kind;
using config::Node;

void from_node(const Node& node, StepCount& value) {
  value.steps.reset();
  if (node.kind == Kind::scalar && node.text == "auto") return;
  if (node.kind == Kind::scalar && !node.quoted) value.steps = config::as_integer(node.text);
  if (value.steps.value_or(0) < 1)
    throw ConfigError(node.source, "", "must be auto or a number of steps, at least 1", "",
                      config::describe(node));
}

Node to_node(const StepCount& value) {
  return value.steps ? config::to_node(*value.steps) : Node::string("auto");
}

void visit_fields(config::Visitor& visit, PrunerOptions& o) {
  visit("type", o.type, config::one_of({"none", "asha", "asha_promotion", "hyperband"}));
  visit("min_resource", o.min_resource);
  visit("max_resource", o.max_resource);
  visit("reduction_factor", o.reduction_factor, config::at_least(2));
  visit("min_early_stopping_rate", o.min_early_stopping_rate, config::at_least(0));
  visit("bootstrap_count", o.bootstrap_count, config::at_least(0));
}

void check(const PrunerOptions& options) {
  config::validate(options, "sweep.pruner");
  const bool hyperband = options.type == "hyperband";
  const auto& used = hyperband ? options.max_resource : options.min_resource;
  if (options.type != "none" && options.bootstrap_count > 0 && !used.steps)
    throw ConfigError("sweep", "pruner.bootstrap_count", "is not known to be reached",
                      hyperband ? "with max_resource a number" : "with min_resource a number",
                      "auto");
  if (hyperband && options.max_resource.steps &&
      *options.max_resource.steps < options.min_resource.steps.value_or(1))
    throw ConfigError("sweep", "pruner.max_resource", "is below min_resource",
                      "at least " + std::to_string(options.min_resource.steps.value_or(1)),
                      std::to_string(*options.max_resource.steps));
}

}  // namespace tare::search
