// Lists the options of optimizers and schedules by asking the checks which ones a kind takes.
#include "tare/optim/infos.h"

#include "tare/base/error.h"
#include "tare/config/shared_options.h"
#include "tare/optim/optimizer.h"
#include "tare/optim/schedule.h"

namespace tare {
namespace {

using config::Node;

/// Whether a check accepts its options; its error is the answer.
template <class Check>
bool accepts(const Check& check) {
  try {
    check();
    return true;
  } catch (const ConfigError&) {
    return false;
  }
}

Node optimizer_options(const std::string& name) {
  const OptimizerKind kind = optimizers::registry().make(name);
  OptimizerOptions standard{.kind = name};
  standard.momentum = kind.momentum;
  standard.beta2 = kind.beta2;
  standard.eps = kind.eps;
  Node options = Node::map();
  const Node fields = config::to_node(standard);
  for (const auto& field : fields.entries) {
    const bool unset = field.value.kind != config::Kind::scalar;
    const bool decays = field.key == "weight_decay" || field.key == "decay_norm_and_bias";
    if (unset || field.key == "kind" || (decays && !kind.weight_decay)) continue;
    if (field.key != "nesterov" || kind.nesterov) options.set(field.key, field.value);
  }
  return options;
}

/// Whether a kind takes a schedule's fields, by themselves or beside a final factor.
bool takes(Schedule schedule) {
  if (accepts([&] { schedule.check(); })) return true;
  schedule.final_factor = 0.5;
  return accepts([&] { schedule.check(); });
}

Node schedule_options(const std::string& name) {
  const Node standard = config::to_node(Schedule{});
  if (takes({.kind = name, .one_cycle = {.div = 2}})) return *standard.find("one_cycle");
  Node options = Node::map();
  if (takes({.kind = name, .warmup = 0.5})) options.set("warmup", *standard.find("warmup"));
  if (accepts([&] { Schedule{.kind = name, .final_factor = 0.5}.check(); }))
    options.set("final_factor", *standard.find("final_factor"));
  return options;
}

}  // namespace

std::vector<config::EntryInfo> optimizers::infos() {
  return config::with_shared(registry().infos(), optimizer_options);
}

std::vector<config::EntryInfo> schedules::infos() {
  return config::with_shared(registry().infos(), schedule_options);
}

}  // namespace tare
