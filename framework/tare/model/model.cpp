// Lists the tensors, layer groups and blocks of a module, and moves it.
#include "tare/model/model.h"

#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "tare/base/error.h"
#include "tare/model/block.h"
#include "tare/model/held_weights.h"

namespace tare {
namespace {

// Any class with "Norm" in its name, so that a user's own normalisation layer counts too.
bool is_norm(const torch::nn::Module& module) {
  return module.name().find("Norm") != std::string::npos;
}

bool is_batch_norm(const torch::nn::Module& module) {
  return dynamic_cast<const torch::nn::BatchNorm1dImpl*>(&module) ||
         dynamic_cast<const torch::nn::BatchNorm2dImpl*>(&module) ||
         dynamic_cast<const torch::nn::BatchNorm3dImpl*>(&module);
}

bool covers(const std::string& member, const std::string& name) {
  return name == member ||
         (name.size() > member.size() && name.compare(0, member.size(), member) == 0 &&
          name[member.size()] == '.');
}

// One group for each direct child that has parameters, one more for parameters of the module
// itself.
std::vector<LayerGroup> default_groups(const torch::nn::Module& module) {
  std::vector<LayerGroup> groups;
  LayerGroup own{"self", {}};
  for (const auto& item : module.named_parameters(/*recurse=*/false))
    own.members.push_back(item.key());
  if (!own.members.empty()) groups.push_back(own);
  for (const auto& child : module.named_children()) {
    if (!child.value()->parameters().empty()) groups.push_back({child.key(), {child.key()}});
  }
  return groups;
}

int64_t find_group(const std::vector<LayerGroup>& groups, const std::string& name) {
  int64_t found = -1;
  for (size_t i = 0; i < groups.size(); ++i) {
    for (const auto& member : groups[i].members) {
      if (!covers(member, name)) continue;
      if (found >= 0) throw ConfigError("model", "parameter '" + name + "' is in two layer groups");
      found = static_cast<int64_t>(i);
    }
  }
  if (found < 0) throw ConfigError("model", "parameter '" + name + "' is in no layer group");
  return found;
}

struct NamedBlock {
  std::string name{};
  Block* block = nullptr;
};

/// Lists the blocks of a module; of blocks inside blocks only the outermost.
std::vector<NamedBlock> blocks_of(const torch::nn::Module& module) {
  std::vector<NamedBlock> blocks;
  for (const auto& item : module.named_modules("", /*include_self=*/false)) {
    const bool inside = !blocks.empty() && covers(blocks.back().name, item.key());
    auto* block = inside ? nullptr : dynamic_cast<Block*>(item.value().get());
    if (block) blocks.push_back({item.key(), block});
  }
  return blocks;
}

ConfigError without_blocks(const std::string& option, const std::string& can) {
  return ConfigError(option, "has no effect, because the model has no block that can " + can +
                                 ": mark its blocks as docs/needing-less.md says under "
                                 "Recomputing, or omit the option")
      .about(option, "a model with blocks", "");
}

[[noreturn]] void throw_no_block(const std::string& option, const std::string& module,
                                 const std::vector<NamedBlock>& blocks) {
  if (blocks.empty())
    throw without_blocks(option, option == "offload" ? "be offloaded" : "be recomputed");
  std::string allowed;
  for (const auto& block : blocks) allowed += (allowed.empty() ? "" : ", ") + block.name;
  throw ConfigError(option, "'" + module + "' names no block of the model; blocks: " + allowed);
}

bool is_all(const std::vector<std::string>& modules) {
  return modules.size() == 1 && modules.front() == "all";
}

void check_named(const std::vector<NamedBlock>& blocks, const std::vector<std::string>& modules,
                 const std::string& option) {
  for (const auto& module : modules) {
    const bool known =
        std::ranges::any_of(blocks, [&](const auto& b) { return covers(module, b.name); });
    if (!known && !(is_all(modules) && !blocks.empty())) throw_no_block(option, module, blocks);
  }
}

/// Makes `flag` true of the blocks that `modules` name, or that are below, and false of the others.
void set_blocks(const torch::nn::Module& model, const std::vector<std::string>& modules,
                bool Activations::*flag, const std::string& option) {
  const auto blocks = blocks_of(model);
  check_named(blocks, modules, option);
  const bool all = is_all(modules);
  for (const NamedBlock& b : blocks) {
    Activations now = b.block->activations();
    now.*flag = all || std::ranges::any_of(
                           modules, [&](const auto& module) { return covers(module, b.name); });
    b.block->set_activations(now);
  }
}

/// The names of the modules that have each parameter.
using Owners = std::unordered_map<const void*, std::vector<std::string>>;

Owners owners_of(const torch::nn::Module& model) {
  Owners owners;
  const auto visit = [&](const std::string& name, const torch::nn::Module& module) {
    for (const auto& item : module.named_parameters(/*recurse=*/false))
      if (item.value().defined()) owners[item.value().unsafeGetTensorImpl()].push_back(name);
  };
  visit("", model);
  for (const auto& item : model.named_modules("", /*include_self=*/false))
    visit(item.key(), *item.value());
  return owners;
}

bool only_in(const std::string& block, const at::Tensor& parameter, const Owners& owners) {
  return std::ranges::all_of(owners.at(parameter.unsafeGetTensorImpl()),
                             [&](const std::string& owner) { return covers(block, owner); });
}

const std::vector<HeldWeight>& held_by(const NamedBlock& block) {
  static const std::vector<HeldWeight> none;
  const auto weights = block.block->held();
  return weights ? weights->all() : none;  // the block has it too
}

bool trains(const HeldWeight& weight) { return weight.parameter.requires_grad(); }

/// Returns the parameters of a block that can be held, but are not.
std::vector<Parameter> to_hold(const NamedBlock& block, const std::vector<Parameter>& parameters,
                               const Owners& owners) {
  std::vector<Parameter> all;
  for (const auto& p : parameters) {
    if (!covers(block.name, p.name) || p.tensor.requires_grad()) continue;
    const bool is_held = std::ranges::any_of(held_by(block), [&](const HeldWeight& weight) {
      return weight.parameter.is_same(p.tensor);
    });
    if (!is_held && fits_codes(p.tensor) && only_in(block.name, p.tensor, owners)) all.push_back(p);
  }
  return all;
}

void check_members(const std::vector<LayerGroup>& groups,
                   const std::vector<Parameter>& parameters) {
  for (const auto& group : groups) {
    for (const auto& member : group.members) {
      bool used = false;
      for (const auto& p : parameters) used = used || covers(member, p.name);
      if (!used) {
        throw ConfigError("model", "layer group '" + group.name + "' names '" + member +
                                       "', which has no parameters");
      }
    }
  }
}

}  // namespace

Model::Model(std::shared_ptr<torch::nn::Module> module, Forward forward,
             std::vector<LayerGroup> groups, std::optional<ModelSpec> spec)
    : module_(std::move(module)),
      forward_(std::move(forward)),
      groups_(std::move(groups)),
      spec_(std::move(spec)) {
  if (!module_)
    throw ConfigError("model", "the module holder is empty; construct the module first");
  if (groups_.empty()) groups_ = default_groups(*module_);
  list_tensors();
  check_members(groups_, parameters_);
}

void Model::list_tensors() {
  std::unordered_set<const void*> seen;  // tied tensors are listed once
  const auto visit = [&](const std::string& prefix, const torch::nn::Module& owner) {
    const std::string dot = prefix.empty() ? "" : prefix + ".";
    for (const auto& item : owner.named_parameters(false)) {
      if (!item.value().defined() || !seen.insert(item.value().unsafeGetTensorImpl()).second)
        continue;
      const auto kind = is_norm(owner)                 ? ParameterKind::norm
                        : item.key().ends_with("bias") ? ParameterKind::bias
                                                       : ParameterKind::weight;
      const std::string name = dot + item.key();
      parameters_.push_back({name, item.value(), kind, find_group(groups_, name)});
    }
    for (const auto& item : owner.named_buffers(false)) {
      if (!item.value().defined() || !seen.insert(item.value().unsafeGetTensorImpl()).second)
        continue;
      buffers_.push_back({dot + item.key(), item.value()});
    }
  };
  visit("", *module_);
  for (const auto& item : module_->named_modules("", /*include_self=*/false))
    visit(item.key(), *item.value());
}

void Model::require(const char* call) const {
  if (!module_)
    throw StateError(call, "moved away", "the model belongs to whoever it was moved to");
}

void detail::refuse_inputs(const Batch& batch, const std::vector<size_t>& allowed) {
  std::string names, numbers;
  for (const NamedTensor& input : batch.inputs)
    names += (names.empty() ? "" : ", ") + printable(input.name);
  for (const size_t number : allowed)
    numbers += (numbers.empty() ? "" : " or ") + std::to_string(number);
  throw ShapeError("model.forward",
                   "a batch of " + numbers + (numbers == "1" ? " input" : " inputs") +
                       ", as many as the module's forward has parameters",
                   std::to_string(batch.inputs.size()) + ": " + names);
}

bool Model::takes(size_t inputs) const {
  return input_counts_.empty() || std::ranges::find(input_counts_, inputs) != input_counts_.end();
}

const std::vector<Parameter>& Model::parameters() const {
  require("model.parameters");
  return parameters_;
}

const std::vector<NamedTensor>& Model::buffers() const {
  require("model.buffers");
  return buffers_;
}

std::vector<NamedTensor> Model::state() const {
  require("model.state");
  std::vector<NamedTensor> all;
  all.reserve(parameters_.size() + buffers_.size());
  for (const auto& p : parameters_) all.push_back({p.name, p.tensor});
  all.insert(all.end(), buffers_.begin(), buffers_.end());
  return all;
}

std::vector<std::string> Model::blocks() const {
  require("model.blocks");
  std::vector<std::string> names;
  for (const auto& [name, block] : blocks_of(*module_)) names.push_back(name);
  return names;
}

torch::nn::Module& Model::submodule(const std::string& name) const {
  require("model.submodule");
  const auto all = module_->named_modules("", /*include_self=*/false);
  const auto* found = all.find(name);
  if (!found) throw ConfigError("model", "has no submodule '" + name + "'");
  return **found;
}

void Model::check_blocks(const std::vector<std::string>& modules, const std::string& option) const {
  require("model.check_blocks");
  check_named(blocks_of(*module_), modules, option);
}

void Model::set_recompute(const std::vector<std::string>& modules) {
  require("model.set_recompute");
  set_blocks(*module_, modules, &Activations::recompute, "recompute");
}

void Model::set_offload(const std::vector<std::string>& modules) {
  require("model.set_offload");
  set_blocks(*module_, modules, &Activations::offload, "offload");
}

bool holds_frozen(const Model& model, bool on) {
  if (!on) return model.held().empty();
  const Owners owners = owners_of(*model.module());
  const auto blocks = blocks_of(*model.module());
  return !blocks.empty() && std::ranges::all_of(blocks, [&](const NamedBlock& block) {
    return std::ranges::none_of(held_by(block), trains) &&
           to_hold(block, model.parameters(), owners).empty();
  });
}

void Model::hold_frozen(bool on) {
  require("model.hold_frozen");
  if (!on && held_.empty()) return;
  const auto blocks = blocks_of(*module_);
  if (on && blocks.empty())
    throw without_blocks("frozen_weights", "hold its frozen weights as fp8");
  const Owners owners = owners_of(*module_);
  for (const NamedBlock& named : blocks) {
    Block* const block = named.block;
    auto weights = block->held();
    if (weights) weights->release([&](const HeldWeight& w) { return !on || trains(w); });
    for (const auto& p : on ? to_hold(named, parameters_, owners) : std::vector<Parameter>()) {
      if (!weights) {
        weights = held_.emplace_back(std::make_shared<HeldWeights>());
        block->set_held(weights);
      }
      weights->hold(p.name, p.tensor);
    }
    if (!weights || !weights->all().empty()) continue;
    block->set_held(nullptr);
    std::erase(held_, weights);
  }
}

std::shared_ptr<HeldWeights> Model::hold_stored(const std::map<std::string, at::Tensor>& scales) {
  require("model.hold_stored");
  const Owners owners = owners_of(*module_);
  std::unordered_map<Block*, std::shared_ptr<HeldWeights>> by_block;  // null: outside of all
  const auto blocks = blocks_of(*module_);
  for (const auto& p : parameters_) {
    const auto scale = scales.find(p.name);
    if (scale == scales.end()) continue;
    Block* inside = nullptr;
    for (const auto& [name, block] : blocks)
      if (covers(name, p.name) && only_in(name, p.tensor, owners)) inside = block;
    auto& weights = by_block[inside];
    if (!weights) weights = held_.emplace_back(std::make_shared<HeldWeights>());
    if (inside) inside->set_held(weights);
    weights->add({.name = p.name, .parameter = p.tensor, .scale = scale->second});
  }
  return by_block[nullptr];
}

void Model::account(Ledger& ledger, Category parameters, Category buffers) const {
  require("model.account");
  for (const auto& weights : held_) weights->account(ledger, parameters);
  for (const auto& p : parameters_) ledger.add(parameters, p.name, p.tensor);
  for (const auto& [name, tensor] : buffers_) ledger.add(buffers, name, tensor);
}

void Model::train(bool on) {
  require("model.train");
  module_->train(on);
}

bool Model::is_training() const {
  require("model.is_training");
  return module_->is_training();
}

void Model::to(c10::Device device) {
  require("model.to");
  for (auto& p : parameters_) p.tensor.mutable_grad().reset();
  bool elsewhere = false;
  for (const auto& [name, tensor] : state()) {
    elsewhere = elsewhere || tensor.device() != device;
    if (tensor.is_meta() && !device.is_meta())
      throw DeviceError("model.to", "'" + printable(name) +
                                        "' is on meta and has no values to move to " +
                                        device.str() + "; make it on a device");
  }
  if (!elsewhere) return;
  module_->to(device);
  for (const auto& weights : held_) weights->move_scales(device);
}

void Model::to_half(c10::ScalarType dtype) {
  require("model.to_half");
  hold_frozen(false);
  const auto convert = [&](at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.is_floating_point()) return;
    tensor.mutable_grad().reset();
    tensor.set_data(tensor.detach().to(dtype));
  };
  for (const auto& part : module_->modules()) {
    if (is_batch_norm(*part)) continue;
    for (auto& item : part->named_parameters(/*recurse=*/false)) convert(item.value());
    for (auto& item : part->named_buffers(/*recurse=*/false)) convert(item.value());
  }
}

void Model::to_channels_last() {
  require("model.to_channels_last");
  for (auto& p : parameters_) {
    if (p.tensor.dim() != 4) continue;
    p.tensor.mutable_grad().reset();
    p.tensor.set_data(p.tensor.detach().contiguous(c10::MemoryFormat::ChannelsLast));
  }
}

c10::Device Model::device() const {
  require("model.device");
  if (!parameters_.empty()) return parameters_.front().tensor.device();
  if (!buffers_.empty()) return buffers_.front().tensor.device();
  return c10::kCPU;
}

EvaluationScope::EvaluationScope(Model& model) {
  for (const auto& module : model.module()->modules())
    modes_.emplace_back(module, module->is_training());
  model.train(false);
}

// Submodules follow their parents in the list, so each one's own mode is set last.
EvaluationScope::~EvaluationScope() {
  for (const auto& [module, training] : modes_) module->train(training);
}

}  // namespace tare
