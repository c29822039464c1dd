// Divides a model over devices by its layer groups, and moves the stages to them.
#include "tare/parallel/stages.h"

#include <torch/nn/module.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "tare/base/bytes.h"
#include "tare/base/error.h"
#include "tare/model/block.h"
#include "tare/model/held_weights.h"

namespace tare::parallel {
namespace {

constexpr const char* kField = "stages";

bool covers(const std::string& member, const std::string& name) {
  return name.starts_with(member) && (name.size() == member.size() || name[member.size()] == '.');
}

bool in_group(const LayerGroup& group, const std::string& name) {
  return std::ranges::any_of(group.members,
                             [&](const std::string& member) { return covers(member, name); });
}

/// Returns the block, among `blocks`, that has a tensor; nullptr: none.
const std::string* block_of(const std::vector<std::string>& blocks, const std::string& name) {
  const auto found =
      std::ranges::find_if(blocks, [&](const std::string& block) { return covers(block, name); });
  return found == blocks.end() ? nullptr : &*found;
}

Block& as_block(const Model& model, const std::string& name) {
  return dynamic_cast<Block&>(model.submodule(name));
}

/// The layer groups with parameters in a block.
struct Span {
  int64_t first = std::numeric_limits<int64_t>::max(), last = -1;
};

std::string names_of(const Model& model, const std::vector<size_t>& groups) {
  std::string names;
  for (const size_t group : groups)
    names += (names.empty() ? "" : ", ") + printable(model.layer_groups()[group].name);
  return names;
}

[[noreturn]] void refuse(const std::string& where, const std::string& problem,
                         const std::string& allowed, const std::string& got) {
  throw ConfigError(where, kField, problem, allowed, got);
}

void check_devices(const std::vector<c10::Device>& devices, const std::string& where) {
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].type() != devices.front().type())
      refuse(where, "must name devices of one type", "cards alone, or the host alone",
             devices.front().str() + ", " + devices[i].str());
    const auto before = devices.begin() + static_cast<std::ptrdiff_t>(i);
    if (!devices[i].is_cpu() && !devices[i].is_meta() &&
        std::find(devices.begin(), before, devices[i]) != before)
      refuse(where, "names a card twice, where two stages gain nothing over one", "each card once",
             devices[i].str());
  }
}

/// Returns the layer groups with which the stages begin whose texts say so.
std::vector<std::optional<size_t>> given_firsts(const Model& model,
                                                const std::vector<std::string>& stages,
                                                size_t parts, const std::vector<size_t>& cuts,
                                                const std::string& where) {
  std::vector<std::optional<size_t>> firsts(parts);
  firsts.front() = 0;
  for (size_t i = 0; i < std::min(parts, stages.size()); ++i) {
    const std::string from = stage_name(stages[i]).from;
    if (from.empty()) continue;
    const auto& groups = model.layer_groups();
    const auto group = std::ranges::find(groups, from, &LayerGroup::name);
    const auto index = static_cast<size_t>(group - groups.begin());
    const bool known = i == 0 ? index == 0 : std::ranges::find(cuts, index) != cuts.end();
    if (group == groups.end() || !known)
      refuse(
          where,
          i == 0 ? "must begin with the first layer group" : "begin where the model cannot be cut",
          i == 0 ? printable(groups.front().name) : names_of(model, cuts), printable(stages[i]));
    firsts[i] = index;
  }
  return firsts;
}

/// Holds the bytes of each layer group and the layer group of each tensor.
struct Loads {
  std::vector<double> bytes;
  std::unordered_map<std::string, size_t> groups;
};

Loads loads_of(const Model& model) {
  const auto& groups = model.layer_groups();
  const std::vector<std::string> blocks = model.blocks();
  Loads loads{.bytes = std::vector<double>(groups.size(), 0), .groups = {}};
  std::unordered_map<std::string, size_t> group_of_block;
  const auto add = [&](const std::string& name, const at::Tensor& tensor, size_t group) {
    loads.groups[name] = group;
    loads.bytes[group] += static_cast<double>(tensor.nbytes());
  };
  for (const Parameter& one : model.parameters()) {
    add(one.name, one.tensor, static_cast<size_t>(one.group));
    if (const std::string* const block = block_of(blocks, one.name))
      group_of_block.try_emplace(*block, static_cast<size_t>(one.group));
  }
  for (const NamedTensor& one : model.buffers()) {
    const auto own =
        std::ranges::find_if(groups, [&](const auto& group) { return in_group(group, one.name); });
    const std::string* const block = block_of(blocks, one.name);
    if (own != groups.end())
      add(one.name, one.tensor, static_cast<size_t>(own - groups.begin()));
    else
      add(one.name, one.tensor, block ? group_of_block[*block] : 0);
  }
  return loads;
}

/// Returns what divided() does for a bound on the load of each stage.
class Division {
 public:
  Division(const std::vector<double>& loads, const std::vector<std::optional<size_t>>& firsts,
           const std::vector<size_t>& cuts, const std::vector<double>& capacities)
      : firsts_(firsts), capacities_(capacities), is_cut_(loads.size() + 1, false) {
    for (const size_t cut : cuts) is_cut_[cut] = true;
    sums_.push_back(0);
    for (const double load : loads) sums_.push_back(sums_.back() + load);
  }

  /// Returns the smallest value over all divisions, and the division: of the largest share, or,
  /// with a bound on it, of the sum of the squared shares.
  [[nodiscard]] double best(std::optional<double> bound, std::vector<size_t>& begins) const {
    const size_t parts = capacities_.size(), groups = sums_.size() - 1;
    // value[i][g]: of the first i stages on the groups before g.
    std::vector<std::vector<double>> value(parts + 1, std::vector<double>(groups + 1, kNone));
    std::vector<std::vector<size_t>> begin(parts + 1, std::vector<size_t>(groups + 1, 0));
    value[0][0] = 0;
    for (size_t i = 1; i <= parts; ++i) {
      for (size_t end = i; end <= groups; ++end) {
        for (size_t from = i - 1; from < end; ++from) {
          if (value[i - 1][from] == kNone || !may_begin(i - 1, from)) continue;
          const double share = (sums_[end] - sums_[from]) / capacities_[i - 1];
          if (bound && share > *bound) continue;
          const double all =
              bound ? value[i - 1][from] + share * share : std::max(value[i - 1][from], share);
          if (all >= value[i][end]) continue;
          value[i][end] = all;
          begin[i][end] = from;
        }
      }
    }
    begins.clear();
    if (value[parts][groups] == kNone) return kNone;
    for (size_t i = parts, end = groups; i > 0; end = begin[i][end], --i)
      begins.insert(begins.begin(), begin[i][end]);
    return value[parts][groups];
  }

  static constexpr double kNone = std::numeric_limits<double>::infinity();

 private:
  [[nodiscard]] bool may_begin(size_t part, size_t group) const {
    if (firsts_[part]) return *firsts_[part] == group;
    return part == 0 ? group == 0 : is_cut_[group];
  }

  const std::vector<std::optional<size_t>>& firsts_;
  const std::vector<double>& capacities_;
  std::vector<bool> is_cut_;
  std::vector<double> sums_;
};

}  // namespace

StageName stage_name(const std::string& text) {
  const size_t at = text.find('@');
  if (at == std::string::npos) return {.device = text};
  return {.device = text.substr(0, at), .from = text.substr(at + 1)};
}

std::vector<std::string> device_names(const std::vector<std::string>& stages) {
  std::vector<std::string> names;
  for (const std::string& stage : stages) names.push_back(stage_name(stage).device);
  return names;
}

std::vector<size_t> cuts_of(const Model& model) {
  const std::vector<std::string> blocks = model.blocks();
  const auto groups = std::ssize(model.layer_groups());
  std::unordered_map<std::string, Span> spans;
  std::vector<const Parameter*> first_of(static_cast<size_t>(groups), nullptr);
  std::unordered_map<std::string, const Parameter*> first_in;
  for (const Parameter& parameter : model.parameters()) {
    const Parameter*& first = first_of[static_cast<size_t>(parameter.group)];
    if (!first) first = &parameter;
    const std::string* const block = block_of(blocks, parameter.name);
    if (!block) continue;
    first_in.try_emplace(*block, &parameter);
    Span& span = spans[*block];
    span.first = std::min(span.first, parameter.group);
    span.last = std::max(span.last, parameter.group);
  }
  std::vector<size_t> cuts;
  for (int64_t group = 1; group < groups; ++group) {
    const Parameter* const first = first_of[static_cast<size_t>(group)];
    const std::string* const block = first ? block_of(blocks, first->name) : nullptr;
    const bool divides = std::ranges::any_of(spans, [group](const auto& entry) {
      return entry.second.first < group && group <= entry.second.last;
    });
    if (block && first_in[*block] == first && !divides) cuts.push_back(static_cast<size_t>(group));
  }
  return cuts;
}

std::vector<size_t> divided(const std::vector<double>& loads,
                            const std::vector<std::optional<size_t>>& firsts,
                            const std::vector<size_t>& cuts,
                            const std::vector<double>& capacities) {
  const Division division(loads, firsts, cuts, capacities);
  std::vector<size_t> begins;
  const double largest = division.best(std::nullopt, begins);
  if (largest == Division::kNone) return {};
  (void)division.best(largest, begins);
  return begins;
}

Stages::Stages(const Model& model, const std::vector<std::string>& stages,
               std::vector<c10::Device> devices, const std::vector<int64_t>& capacities,
               const std::string& where) {
  if (devices.empty()) return;
  check_devices(devices, where);
  const auto& groups = model.layer_groups();
  const std::vector<size_t> cuts = cuts_of(model);
  if (stages.size() == 1 && stages.front() == "auto")
    devices.resize(std::min(devices.size(), cuts.size() + 1), c10::kCPU);
  const std::string count = std::to_string(devices.size());
  if (devices.size() > 1 && cuts.empty())
    refuse(where,
           "needs a layer group that begins with a block, at which the model can be cut: mark its "
           "blocks as docs/needing-less.md says under Recomputing",
           "one device", count + " stages");
  if (devices.size() > cuts.size() + 1)
    refuse(where, "has more stages than the model, which can be cut at " + names_of(model, cuts),
           "at most " + std::to_string(cuts.size() + 1) + " stages", count);

  const Loads loads = loads_of(model);
  const std::vector<double> sizes =
      capacities.empty()
          ? std::vector<double>(devices.size(), 1.0)
          : std::vector<double>(capacities.begin(),
                                capacities.begin() + static_cast<std::ptrdiff_t>(devices.size()));
  const auto begins =
      divided(loads.bytes, given_firsts(model, stages, devices.size(), cuts, where), cuts, sizes);
  if (begins.empty())
    refuse(where, "leaves a stage without a layer group at which the model can be cut",
           names_of(model, cuts) + ", in this order", count + " stages");
  for (size_t i = 0; i < begins.size(); ++i) {
    const size_t end = i + 1 < begins.size() ? begins[i + 1] : groups.size();
    Stage stage{.device = devices[i], .first = begins[i], .end = end};
    for (size_t group = stage.first; group < end; ++group)
      stage.bytes += static_cast<int64_t>(loads.bytes[group]);
    all_.push_back(stage);
  }
  for (const auto& [name, group] : loads.groups) {
    const auto stage = std::ranges::find_if(
        all_, [group = group](const Stage& s) { return group >= s.first && group < s.end; });
    stage_by_name_[name] = static_cast<size_t>(stage - all_.begin());
  }
}

std::vector<std::string> Stages::names(const Model& model) const {
  std::vector<std::string> names;
  for (const Stage& stage : all_) {
    std::string from = stage.first > 0 ? '@' + model.layer_groups()[stage.first].name : "";
    names.push_back(stage.device.str() + from);
  }
  return names;
}

std::string Stages::groups_text(const Model& model, size_t number) const {
  const Stage& stage = all_[number];
  const auto name = [&](size_t group) { return printable(model.layer_groups()[group].name); };
  return name(stage.first) + (stage.end - stage.first > 1 ? " to " + name(stage.end - 1) : "");
}

std::string Stages::str(const Model& model) const {
  std::string text;
  for (size_t i = 0; i < all_.size(); ++i)
    text += (text.empty() ? "" : "; ") + all_[i].device.str() + ": " + groups_text(model, i) +
            ", " + format_bytes(all_[i].bytes);
  return text;
}

std::vector<c10::Device> Stages::devices() const {
  std::vector<c10::Device> devices;
  for (const Stage& stage : all_)
    if (std::ranges::find(devices, stage.device) == devices.end()) devices.push_back(stage.device);
  return devices;
}

std::optional<size_t> Stages::stage_of(const std::string& tensor) const {
  const auto found = stage_by_name_.find(tensor);
  return found == stage_by_name_.end() ? std::nullopt : std::optional(found->second);
}

bool Stages::holds(const Model& model) const {
  return std::ranges::all_of(model.state(), [this](const NamedTensor& one) {
    return one.tensor.device() == all_[*stage_of(one.name)].device;
  });
}

void Stages::place(Model& model) const {
  const auto device_of = [this](const std::string& name) { return all_[*stage_of(name)].device; };
  for (const Parameter& one : model.parameters()) one.tensor.mutable_grad().reset();
  std::unordered_map<const void*, c10::Device> wanted;
  for (const auto& [name, tensor] : model.state()) {
    const c10::Device device = device_of(name);
    if (tensor.is_meta() && !device.is_meta())
      throw DeviceError("learner.stages", "'" + printable(name) +
                                              "' is on meta and has no values to move to " +
                                              device.str() + "; make it on a device");
    wanted.emplace(tensor.unsafeGetTensorImpl(), device);
  }
  // A module without others moves itself, because it may keep its weights in one piece.
  for (const auto& module : model.module()->modules()) {
    if (!module->children().empty()) continue;
    std::vector<at::Tensor> own = module->parameters(/*recurse=*/false);
    std::ranges::move(module->buffers(/*recurse=*/false), std::back_inserter(own));
    std::optional<c10::Device> device;
    bool together = true;
    for (const at::Tensor& tensor : own) {
      const auto found = wanted.find(tensor.unsafeGetTensorImpl());
      if (found == wanted.end()) continue;
      together = together && (!device || *device == found->second);
      device = found->second;
    }
    if (device && together) module->to(*device);
  }
  for (const auto& [name, tensor] : model.state())
    if (tensor.device() != device_of(name)) tensor.set_data(tensor.detach().to(device_of(name)));
  for (const std::string& name : model.blocks()) {
    Block& block = as_block(model, name);
    const auto parameters = model.submodule(name).parameters();
    if (parameters.empty()) continue;  // it stays where its inputs are
    block.set_device(parameters.front().device());
    if (block.held()) block.held()->move_scales(parameters.front().device());
  }
}

void place(Model& model, c10::Device device) {
  model.to(device);
  for (const auto& module : model.module()->modules())
    if (auto* block = dynamic_cast<Block*>(module.get())) block->set_device(std::nullopt);
}

}  // namespace tare::parallel
