// Lists the options of a Learner, and prints its results.
#include "tare/train/options.h"

#include <cmath>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/config/node.h"
#include "tare/model/precision.h"

namespace tare {

void visit_fields(config::Visitor& visit, LearnerOptions& o) {
  visit("loss", o.loss);
  visit("metrics", o.metrics);
  visit("device", o.device);
  visit("stages", o.stages);
  visit("batch", o.batch, config::at_least(1));
  visit.as<MicroBatch>("micro_batch", o.micro_batch, config::at_least(1));
  visit.as<BlockNames>("recompute", o.recompute);
  visit.as<BlockNames>("offload", o.offload);
  visit("precision", o.precision, config::one_of(precision_names()));
  visit("kernels", o.kernels);
  visit("step_in_backward", o.step_in_backward);
  visit("graph", o.graph);
  visit("frozen_weights", o.frozen_weights, config::one_of({"as_is", "fp8"}));
  visit("optimizer", o.optimizer);
  visit("clip", o.clip);
  visit("data_parallel", o.data_parallel);
  visit("seed", o.seed);
  visit("workers", o.workers, config::between(0, 256));
  visit("shuffle", o.shuffle);
  visit("sampling", o.sampling, config::one_of({"each", "balanced"}));
  visit("class_sampling", o.class_sampling);
  visit("group_by_length", o.group_by_length);
  visit("valid_every", o.valid_every, config::at_least(0));
  visit("save_in_background", o.save_in_background);
  visit("drop_last", o.drop_last);
  visit("stop_on_nan", o.stop_on_nan);
  visit("folder", o.folder);
  visit("progress", o.progress);
}

void from_node(const config::Node& node, ClassSampling& value) {
  if (node.kind != config::Kind::map)
    throw ConfigError(node.source, "", "must be a mapping of labels to weights",
                      "such as {cat: 3, dog: 0.5}", config::describe(node));
  value.weights.clear();
  for (const config::Entry& entry : node.entries) {
    const auto weight = config::read<double>(entry.value);
    if (!(weight >= 0) || !std::isfinite(weight))
      throw ConfigError(entry.value.source, entry.key, "must be a weight >= 0", "",
                        config::describe(entry.value));
    value.weights.emplace(entry.key, weight);
  }
}

config::Node to_node(const ClassSampling& value) {
  config::Node node = config::Node::map();
  for (const auto& [label, weight] : value.weights) node.set(label, config::to_node(weight));
  return node;
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

double FitResult::samples_per_s() const {
  double samples = 0, time = 0;
  for (const auto& row : epochs) {
    samples += static_cast<double>(row.samples);
    time += row.seconds;
  }
  return time > 0 ? samples / time : 0;
}

const char* to_string(Split split) {
  switch (split) {
    case Split::train:
      return "train";
    case Split::valid:
      return "valid";
    case Split::test:
      return "test";
  }
  return "?";
}

std::string FreezeReport::str() const {
  std::string text =
      format_count(trainable) + " parameters train, " + format_count(frozen) + " are frozen";
  if (gradient_bytes > 0) text += "; freed gradients " + format_bytes(gradient_bytes);
  if (state_bytes > 0) text += "; freed optimizer state " + format_bytes(state_bytes);
  if (state_kept > 0) text += "; kept the state of " + std::to_string(state_kept) + " tensors";
  if (held_bytes && frozen > 0)
    text += "; of the frozen " + format_bytes(*held_bytes) + " as fp8 and " +
            format_bytes(other_bytes) + " as they are";
  return text;
}

std::string LoadReport::str() const {
  std::string text = optimizer_loaded ? "loaded weights and optimizer" : "loaded weights";
  const auto list = [&text](const char* what, const std::vector<std::string>& names) {
    if (names.empty()) return;
    text += std::string("; ") + what;
    for (const auto& name : names) text += ' ' + name;
  };
  list("fresh:", fresh);
  list("ignored:", ignored);
  list("optimizer state fresh:", optimizer_fresh);
  if (resumable) text += "; resume() continues inside its fit";
  return text;
}

bool is_auto(const std::vector<std::string>& recompute) {
  return recompute.size() == 1 && recompute.front() == "auto";
}

}  // namespace tare
