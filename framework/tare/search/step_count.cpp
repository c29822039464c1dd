// Reads and writes numbers of steps.
#include "tare/search/step_count.h"

#include "tare/base/error.h"
#include "tare/config/field.h"
#include "tare/config/scalar.h"

namespace tare::search {

using config::Kind;
using config::Node;

void from_node(const Node& node, StepCount& value) {
  value.steps.reset();
  if (node.kind == Kind::scalar && node.text == "auto") return;
  if (node.kind == Kind::scalar && !node.quoted) value.steps = config::as_integer(node.text);
  if (value.steps.value_or(0) < 1)
    throw ConfigError(node.source, "", "must be auto or a number of epochs, at least 1", "",
                      config::describe(node));
}

Node to_node(const StepCount& value) {
  return value.steps ? config::to_node(*value.steps) : Node::string("auto");
}

}  // namespace tare::search
