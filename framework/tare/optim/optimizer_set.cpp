// Several optimizers as one.
#include "tare/optim/optimizer_set.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "tare/base/error.h"

namespace tare {
namespace {

bool covers(const std::string& member, const std::string& parameter) {
  return parameter == member || parameter.starts_with(member + ".");
}

bool owns(const NamedOptimizer& one, const std::string& parameter) {
  return std::ranges::any_of(one.parameters,
                             [&](const std::string& member) { return covers(member, parameter); });
}

constexpr size_t kListed = 8;  // names in a message

std::vector<std::string> names_of(const std::vector<NamedOptimizer>& all) {
  std::vector<std::string> names;
  for (const NamedOptimizer& one : all) names.push_back(one.name);
  return names;
}

void check_one(const NamedOptimizer& one, const Model& model, const std::string& where) {
  const std::string place = "optimizer '" + printable(one.name) + "' ";
  if (one.name.empty() || one.name.find('/') != std::string::npos)
    throw ConfigError(where, place + "has a name that is empty or has a '/'; give it another");
  if (one.parameters.empty())
    throw ConfigError(where, place +
                                 "has no parameters; name submodules or parameters of the "
                                 "model in NamedOptimizer::parameters");
  for (const std::string& member : one.parameters) {
    const auto& all = model.parameters();
    if (std::ranges::any_of(all, [&](const auto& p) { return covers(member, p.name); })) continue;
    std::vector<std::string> known;
    for (const auto& p : all) known.push_back(p.name);
    throw ConfigError(
        where, place + "names '" + printable(member) + "', which no parameter of the model has" +
                   did_you_mean(member, known) + "; known: " + listed(known, kListed));
  }
  if (one.factory && one.options != OptimizerOptions{})
    throw ConfigError(where, place +
                                 "has options and a factory; give the factory its options, and "
                                 "omit NamedOptimizer::options");
  if (!one.factory) {
    config::validate(one.options, where);
    check_optimizer(one.options);
  }
  if (one.schedule) one.schedule->check();
}

}  // namespace

void check_optimizers(const std::vector<NamedOptimizer>& all, const Model& model,
                      const std::string& where) {
  for (auto one = all.begin(); one != all.end(); ++one) {
    check_one(*one, model, where);
    if (std::ranges::find(all.begin(), one, one->name, &NamedOptimizer::name) != one)
      throw ConfigError(where, "two optimizers are named '" + printable(one->name) +
                                   "'; give each a name of its own");
  }
  std::vector<Parameter> trained;
  for (const Parameter& parameter : model.parameters()) {
    if (parameter.tensor.requires_grad()) trained.push_back(parameter);
    std::vector<std::string> owners;
    for (const NamedOptimizer& one : all)
      if (owns(one, parameter.name)) owners.push_back(one.name);
    if (owners.size() > 1)
      throw ConfigError(where, "the parameter " + printable(parameter.name) +
                                   " belongs to several optimizers: " + listed(owners, kListed) +
                                   "; name it in one of them");
  }
  check_owners(all, trained, where);
}

void check_owners(const std::vector<NamedOptimizer>& all, const std::vector<Parameter>& trained,
                  const std::string& where) {
  std::vector<std::string> without;
  for (const Parameter& parameter : trained)
    if (std::ranges::none_of(all, [&](const auto& one) { return owns(one, parameter.name); }))
      without.push_back(parameter.name);
  if (without.empty()) return;
  throw ConfigError(where, "trainable parameters belong to none of the optimizers " +
                               listed(names_of(all), kListed) + ": " + listed(without, kListed) +
                               "; name them or their submodule in NamedOptimizer::parameters of "
                               "one, or freeze them");
}

std::vector<ParameterGroup> make_groups_by_optimizer(const Model& model,
                                                     const std::vector<NamedOptimizer>& all) {
  std::vector<ParameterGroup> groups;
  for (const NamedOptimizer& one : all) {
    for (ParameterGroup& group : make_groups(model, one.options)) {
      std::erase_if(group.parameters, [&](const auto& p) { return !owns(one, p.name); });
      if (group.parameters.empty()) continue;
      group.optimizer = one.name;
      groups.push_back(std::move(group));
    }
  }
  return groups;
}

namespace {

std::vector<ParameterGroup> groups_of(const std::string& optimizer,
                                      const std::vector<ParameterGroup>& all) {
  std::vector<ParameterGroup> own;
  std::ranges::copy_if(all, std::back_inserter(own),
                       [&](const ParameterGroup& group) { return group.optimizer == optimizer; });
  return own;
}

/// The rate of an optimizer whose parameters are all frozen; a function says it for one parameter.
double rate_of(const NamedOptimizer& one) {
  if (!one.factory) return one.options.lr;
  const Parameter any{.name = "any", .tensor = at::zeros({1}).requires_grad_()};
  return one.factory({ParameterGroup{.parameters = {any}}})->groups().front().lr;
}

}  // namespace

OptimizerSet::OptimizerSet(const std::vector<NamedOptimizer>& all,
                           std::vector<ParameterGroup> groups, bool with_tensors)
    : Optimizer(std::move(groups)) {
  for (const NamedOptimizer& one : all) {
    auto own = groups_of(one.name, groups_);
    Part part{.name = one.name};
    if (one.schedule) part.schedule.emplace(*one.schedule);
    part.optimizer = one.factory ? one.factory(std::move(own))
                                 : make_optimizer(one.options, std::move(own), with_tensors);
    const auto& made = part.optimizer->groups();
    part.rate = made.empty() ? rate_of(one) : made.front().lr;
    parts_.push_back(std::move(part));
  }
}

std::vector<std::string> OptimizerSet::names() const {
  std::vector<std::string> all;
  for (const Part& one : parts_) all.push_back(one.name);
  return all;
}

Optimizer& OptimizerSet::part(const std::string& name) {
  const auto found = std::ranges::find(parts_, name, &Part::name);
  if (found != parts_.end()) return *found->optimizer;
  throw unknown_name("optimizers", "optimizer", name, names());
}

void OptimizerSet::set_rates(const std::vector<double>& rates, const FitSchedules& schedules,
                             const std::vector<GroupBase>& bases, int64_t step, int64_t steps) {
  size_t at = 0;
  for (Part& part : parts_) {
    auto now = schedules.at(step, steps, part.schedule ? &*part.schedule : nullptr);
    now.rate *= part.rate / rate();
    for (ParameterGroup& group : part.optimizer->groups()) {
      set_values(group, rates[static_cast<size_t>(group.layer_group)], now, bases[at]);
      ParameterGroup& shown = groups_[at++];
      shown.lr = group.lr;
      shown.momentum = group.momentum;
      shown.beta2 = group.beta2;
      shown.weight_decay = group.weight_decay;
    }
  }
}

bool OptimizerSet::sets_momentum() const {
  return std::ranges::any_of(
      parts_, [](const Part& part) { return part.schedule && part.schedule->sets_momentum(); });
}

std::vector<ParameterGroup*> OptimizerSet::stepped_groups() {
  std::vector<ParameterGroup*> all;
  for (Part& part : parts_)
    for (ParameterGroup& group : part.optimizer->groups()) all.push_back(&group);
  return all;
}

std::string OptimizerSet::kind() const {
  std::string text;
  for (const Part& part : parts_)
    text += (text.empty() ? "" : ", ") + part.name + ": " + part.optimizer->kind();
  return text;
}

void OptimizerSet::step() {
  for (Part& part : parts_) part.optimizer->step();
}

// A step of such a part cannot run out of memory once it has begun and its state is prepared.
bool OptimizerSet::steps_atomically() const {
  return std::ranges::all_of(parts_,
                             [](const Part& part) { return part.optimizer->steps_atomically(); });
}

void OptimizerSet::prepare() {
  for (Part& part : parts_) part.optimizer->prepare();
}

void OptimizerSet::clear() {
  for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) part->optimizer->clear();
}

std::vector<NamedTensor> OptimizerSet::state() const {
  std::vector<NamedTensor> all;
  for (const Part& part : parts_)
    for (NamedTensor& entry : part.optimizer->state())
      all.push_back({part.name + "/" + entry.name, std::move(entry.tensor)});
  return all;
}

namespace {

constexpr const char* kLoad = "optimizer.load_state";
constexpr const char* kRemedy =
    "; load without the optimizer, or with the optimizers that wrote the state";

/// A name of a set's state, "<optimizer>/<buffer>/<parameter>", in its parts. Of the state of a
/// single optimizer, "<buffer>/<parameter>", the optimizer is empty.
struct StateName {
  explicit StateName(const std::string& name) {
    const size_t first = name.find('/');
    const size_t second = first == std::string::npos ? first : name.find('/', first + 1);
    if (second == std::string::npos) return;
    optimizer = name.substr(0, first);
    rest = name.substr(first + 1);
    parameter = name.substr(second + 1);
  }
  std::string optimizer{}, rest{}, parameter{};
};

/// Lists the optimizers that wrote a state.
std::string writers_of(const std::vector<NamedTensor>& state) {
  std::vector<std::string> names;
  for (const NamedTensor& entry : state) {
    const StateName name(entry.name);
    if (name.optimizer.empty()) return "one optimizer without a name";
    if (std::ranges::find(names, name.optimizer) == names.end()) names.push_back(name.optimizer);
  }
  return "the optimizers " + listed(names, kListed);
}

}  // namespace

std::vector<std::vector<NamedTensor>> OptimizerSet::split(
    const std::vector<NamedTensor>& state) const {
  std::map<std::string, std::string> owners;
  for (const ParameterGroup& group : groups_)
    for (const Parameter& parameter : group.parameters) owners[parameter.name] = group.optimizer;
  std::vector<std::vector<NamedTensor>> of_parts(parts_.size());
  for (const NamedTensor& entry : state) {
    const StateName name(entry.name);
    const auto part = std::ranges::find(parts_, name.optimizer, &Part::name);
    if (part == parts_.end())
      throw ConfigError(kLoad, "the state is of " + writers_of(state) + ", the present ones are " +
                                   listed(names(), kListed) + kRemedy);
    const auto owner = owners.find(name.parameter);
    if (owner != owners.end() && owner->second != name.optimizer)
      throw ConfigError(kLoad, "the state of " + printable(name.parameter) +
                                   " is of the optimizer " + printable(name.optimizer) +
                                   ", and here the parameter belongs to " +
                                   printable(owner->second) + kRemedy);
    of_parts[static_cast<size_t>(part - parts_.begin())].push_back({name.rest, entry.tensor});
  }
  return of_parts;
}

void OptimizerSet::check_state(const std::vector<NamedTensor>& state) {
  const auto of_parts = split(state);
  for (size_t i = 0; i < parts_.size(); ++i) parts_[i].optimizer->check_state(of_parts[i]);
}

// Does everything that can fail before it writes the first part.
std::vector<std::string> OptimizerSet::load_state(const std::vector<NamedTensor>& state) {
  const auto of_parts = split(state);
  for (size_t i = 0; i < parts_.size(); ++i) parts_[i].optimizer->check_state(of_parts[i]);
  prepare();
  std::vector<std::string> fresh;
  for (size_t i = 0; i < parts_.size(); ++i)
    for (std::string& name : parts_[i].optimizer->load_state(of_parts[i]))
      fresh.push_back(std::move(name));
  return fresh;
}

StateChange OptimizerSet::set_groups(std::vector<ParameterGroup> groups) {
  groups_ = std::move(groups);
  StateChange all;
  for (Part& part : parts_) {
    const StateChange change = part.optimizer->set_groups(groups_of(part.name, groups_));
    all.kept += change.kept;
    all.fresh += change.fresh;
    all.freed += change.freed;
    all.freed_bytes += change.freed_bytes;
  }
  return all;
}

void OptimizerSet::account(Ledger& ledger) const {
  for (const Part& part : parts_) part.optimizer->account(ledger);
}

TrainOnly::TrainOnly(const OptimizerSet& set, const std::string& optimizer) {
  if (optimizer.empty()) return;
  for (const ParameterGroup& group : set.groups()) {
    if (group.optimizer == optimizer) continue;
    for (const Parameter& parameter : group.parameters) others_.push_back(parameter.tensor);
  }
  for (const at::Tensor& tensor : others_) (void)tensor.set_requires_grad(false);
}

TrainOnly::~TrainOnly() {
  for (const at::Tensor& tensor : others_) (void)tensor.set_requires_grad(true);
}

}  // namespace tare
