// Wraps the optimizers of torch::optim: options, state and groups.
#include "tare/optim/torch_optimizer.h"

#include <ATen/ops/scalar_tensor.h>
#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <array>
#include <unordered_map>

#include "tare/base/error.h"
#include "tare/optim/state_index.h"

namespace tare {
namespace {

using at::Tensor;
using TorchOptions = torch::optim::OptimizerOptions;
using TorchParamState = torch::optim::OptimizerParamState;
using Visit = std::function<void(const char* buffer, Tensor& tensor)>;

// Momentum: SGD and RMSprop have it by that name, Adam and AdamW as the first beta, Adagrad has
// none.
template <class O>
double get_momentum(const TorchOptions& base) {
  const auto& options = static_cast<const O&>(base);
  if constexpr (requires { options.momentum(); }) return options.momentum();
  if constexpr (requires { options.betas(); }) return std::get<0>(options.betas());
  return 0;
}

template <class O>
void set_momentum(TorchOptions& base, double value) {
  auto& options = static_cast<O&>(base);
  if constexpr (requires { options.momentum(value); }) {
    options.momentum(value);
  } else if constexpr (requires { options.betas(); }) {
    std::get<0>(options.betas()) = value;
  }
}

template <class S>
void visit_state(TorchParamState& base, const Visit& visit) {
  auto& state = static_cast<S&>(base);
  if constexpr (requires { state.exp_avg(); }) {
    visit("exp_avg", state.exp_avg());
    visit("exp_avg_sq", state.exp_avg_sq());
    visit("max_exp_avg_sq", state.max_exp_avg_sq());
  }
  if constexpr (requires { state.square_avg(); }) {
    visit("square_avg", state.square_avg());
    visit("grad_avg", state.grad_avg());
  }
  if constexpr (requires { state.momentum_buffer(); })
    visit("momentum_buffer", state.momentum_buffer());
  if constexpr (requires { state.sum(); }) visit("sum", state.sum());
  if constexpr (requires { state.step(); }) {
    Tensor step = at::scalar_tensor(static_cast<double>(state.step()), at::kFloat);
    visit("step", step);
    state.step(step.defined() ? step.item<int64_t>() : 0);
  }
}

}  // namespace

struct TorchOptimizer::Class {
  const char* kind;
  const char* main_buffer;  // every parameter that was stepped has it
  bool counts;
  bool (*is)(const torch::optim::Optimizer&);
  double (*momentum)(const TorchOptions&);
  void (*set_momentum)(TorchOptions&, double);
  double (*weight_decay)(const TorchOptions&);
  void (*set_weight_decay)(TorchOptions&, double);
  std::unique_ptr<TorchParamState> (*make_state)();
  void (*visit)(TorchParamState&, const Visit&);

  template <class T, class O, class S>
  static constexpr Class of(const char* kind, const char* main_buffer, bool counts) {
    return {kind,
            main_buffer,
            counts,
            [](const torch::optim::Optimizer& o) { return dynamic_cast<const T*>(&o) != nullptr; },
            get_momentum<O>,
            tare::set_momentum<O>,
            [](const TorchOptions& o) { return static_cast<const O&>(o).weight_decay(); },
            [](TorchOptions& o, double value) { static_cast<O&>(o).weight_decay(value); },
            []() -> std::unique_ptr<TorchParamState> { return std::make_unique<S>(); },
            visit_state<S>};
  }
  static const Class* find(const torch::optim::Optimizer& optimizer);
  [[nodiscard]] bool has_buffer(const std::string& name) const;
  [[nodiscard]] int64_t bytes(TorchParamState& state) const;
};

const TorchOptimizer::Class* TorchOptimizer::Class::find(const torch::optim::Optimizer& optimizer) {
  using namespace torch::optim;  // NOLINT: one statement
  static constexpr std::array<Class, 5> all{
      of<SGD, SGDOptions, SGDParamState>("torch.sgd", "momentum_buffer", false),
      of<Adam, AdamOptions, AdamParamState>("torch.adam", "exp_avg", true),
      of<AdamW, AdamWOptions, AdamWParamState>("torch.adamw", "exp_avg", true),
      of<RMSprop, RMSpropOptions, RMSpropParamState>("torch.rmsprop", "square_avg", true),
      of<Adagrad, AdagradOptions, AdagradParamState>("torch.adagrad", "sum", true)};
  for (const Class& known : all) {
    if (known.is(optimizer)) return &known;
  }
  return nullptr;
}

bool TorchOptimizer::Class::has_buffer(const std::string& name) const {
  bool found = false;
  visit(*make_state(), [&](const char* buffer, Tensor&) { found = found || name == buffer; });
  return found;
}

int64_t TorchOptimizer::Class::bytes(TorchParamState& state) const {
  int64_t all = 0;
  visit(state, [&](const char* buffer, Tensor& tensor) {
    if (!tensor.defined() || std::string_view(buffer) == "step") return;
    all += static_cast<int64_t>(tensor.storage().nbytes());
  });
  return all;
}

TorchOptimizer::TorchOptimizer(TorchFactory factory, std::vector<ParameterGroup> groups)
    : Optimizer(std::move(groups)), factory_(std::move(factory)) {
  if (!factory_)
    throw ConfigError("torch_optimizer",
                      "the factory is empty; give one that makes a torch::optim optimizer");
  build();
  read_options();
}

TorchOptimizer::~TorchOptimizer() = default;

std::string TorchOptimizer::kind() const { return class_ ? class_->kind : "torch"; }

void TorchOptimizer::build() {
  std::vector<torch::optim::OptimizerParamGroup> made;
  for (size_t i = 0; i < groups_.size(); ++i) {
    std::vector<Tensor> parameters;
    for (const auto& p : groups_[i].parameters) parameters.push_back(p.tensor);
    if (i < options_.size() && options_[i]) {
      made.emplace_back(std::move(parameters), options_[i]->clone());
    } else {
      made.emplace_back(std::move(parameters));
    }
  }
  torch_ = factory_(std::move(made));
  if (!torch_) throw ConfigError("torch_optimizer", "the factory gave no optimizer");
  if (dynamic_cast<torch::optim::LBFGS*>(torch_.get())) {
    throw ConfigError(
        "torch_optimizer",
        "LBFGS evaluates the model itself and cannot be used in a fit; use adamw or sgd");
  }
  class_ = Class::find(*torch_);
}

void TorchOptimizer::read_options() {
  for (size_t i = 0; i < groups_.size(); ++i) {
    const TorchOptions& options = torch_->param_groups()[i].options();
    groups_[i].lr = options.get_lr();
    groups_[i].momentum = class_ ? class_->momentum(options) : 0;
    groups_[i].weight_decay = class_ ? class_->weight_decay(options) : 0;
  }
}

void TorchOptimizer::write_options() {
  for (size_t i = 0; i < groups_.size(); ++i) {
    TorchOptions& options = torch_->param_groups()[i].options();
    const ParameterGroup& group = groups_[i];
    if (options.get_lr() != group.lr) options.set_lr(group.lr);
    if (!class_) continue;
    if (class_->momentum(options) != group.momentum) class_->set_momentum(options, group.momentum);
    if (class_->weight_decay(options) != group.weight_decay)
      class_->set_weight_decay(options, group.weight_decay);
  }
}

torch::optim::Optimizer& TorchOptimizer::torch() {
  prepare();
  return *torch_;
}

void TorchOptimizer::prepare() {
  if (!torch_) build();
}

void TorchOptimizer::step() {
  prepare();
  write_options();
  torch_->step();
}

void TorchOptimizer::clear() {
  if (!torch_) return;
  write_options();
  options_.clear();
  for (auto& group : torch_->param_groups()) options_.push_back(group.options().clone());
  torch_.reset();
}

void TorchOptimizer::visit_tensors(
    const std::function<void(const std::string& name, Tensor& tensor)>& visit) const {
  if (!torch_ || !class_) return;
  for (const auto& group : groups_) {
    for (const auto& p : group.parameters) {
      const auto found = torch_->state().find(p.tensor.unsafeGetTensorImpl());
      if (found == torch_->state().end()) continue;
      class_->visit(*found->second, [&](const char* buffer, Tensor& tensor) {
        if (tensor.defined()) visit(std::string(buffer) + "/" + p.name, tensor);
      });
    }
  }
}

std::vector<NamedTensor> TorchOptimizer::state() const {
  if (torch_ && !class_ && !torch_->state().empty()) {
    throw StateError("optimizer.state", "of a torch optimizer class that is not known",
                     "save without the optimizer");
  }
  std::vector<NamedTensor> all;
  visit_tensors([&](const std::string& name, Tensor& tensor) { all.push_back({name, tensor}); });
  return all;
}

void TorchOptimizer::account(Ledger& ledger) const {
  visit_tensors([&](const std::string& name, Tensor& tensor) {
    if (!name.starts_with("step/")) ledger.add(Category::optimizer, name, tensor);
  });
}

std::unique_ptr<TorchParamState> TorchOptimizer::read_state(const Parameter& parameter,
                                                            const StateIndex& index) const {
  if (!index.find(class_->main_buffer, parameter.name)) return nullptr;
  auto made = class_->make_state();
  class_->visit(*made, [&](const char* buffer, Tensor& tensor) {
    const bool step = std::string_view(buffer) == "step";
    const NamedTensor* entry = index.find(buffer, parameter.name);
    if (step && !entry) throw_incomplete(parameter.name);
    if (!entry) return;
    require_like(*entry, step ? tensor : parameter.tensor, /*exact_type=*/false);
    tensor =
        step ? entry->tensor
             : entry->tensor.to(parameter.tensor.options(), /*non_blocking=*/false, /*copy=*/true);
  });
  return made;
}

/// States by torch's keys, and the names of parameters without one.
struct TorchOptimizer::States {
  std::unordered_map<void*, std::unique_ptr<TorchParamState>> found{};
  std::vector<std::string> fresh{};
};

TorchOptimizer::States TorchOptimizer::read_states(const std::vector<NamedTensor>& state) {
  prepare();
  if (!class_) {
    throw StateError("optimizer.load_state", "of a torch optimizer class that is not known",
                     "load without the optimizer");
  }
  const StateIndex index(state, kind(),
                         [this](const std::string& buffer) { return class_->has_buffer(buffer); });
  States states;
  for (const auto& group : groups_) {
    for (const auto& p : group.parameters) {
      auto made = read_state(p, index);
      if (made) {
        states.found.emplace(p.tensor.unsafeGetTensorImpl(), std::move(made));
      } else {
        states.fresh.push_back(p.name);
      }
    }
  }
  return states;
}

void TorchOptimizer::check_state(const std::vector<NamedTensor>& state) {
  (void)read_states(state);
}

std::vector<std::string> TorchOptimizer::load_state(const std::vector<NamedTensor>& state) {
  States states = read_states(state);
  clear();
  prepare();
  for (auto& [key, value] : states.found) torch_->state()[key] = std::move(value);
  return std::move(states.fresh);
}

StateChange TorchOptimizer::set_groups(std::vector<ParameterGroup> groups) {
  std::unordered_map<void*, std::unique_ptr<TorchParamState>> old;
  if (torch_) {
    for (auto& [key, value] : torch_->state()) old.emplace(key, std::move(value));
  }
  groups_ = std::move(groups);
  options_.clear();
  torch_.reset();
  build();
  read_options();
  StateChange change;
  for (const auto& group : groups_) {
    for (const auto& p : group.parameters) {
      const auto found = old.find(p.tensor.unsafeGetTensorImpl());
      if (found == old.end()) {
        ++change.fresh;
        continue;
      }
      torch_->state()[found->first] = std::move(found->second);
      old.erase(found);
      ++change.kept;
    }
  }
  for (const auto& [key, value] : old) {
    ++change.freed;
    if (class_) change.freed_bytes += class_->bytes(*value);
  }
  return change;
}

}  // namespace tare
