// Where a Learner is in its training, to and from a checkpoint.
#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <sstream>
#include <utility>

#include "tare/base/content_hash.h"
#include "tare/base/error.h"
#include "tare/checkpoint/checkpoint.h"
#include "tare/config/node.h"
#include "tare/model/stored.h"
#include "tare/optim/fused.h"
#include "tare/train/fit_loop.h"
#include "tare/train/learner_state.h"
#include "tare/train/rng.h"

namespace tare {
namespace {

const std::string kGradient = "gradients/";

}  // namespace

TrainState LearnerState::train_state() const {
  TrainState state{.epochs_done = epochs_done,
                   .saves = saves + 1,
                   .history = history,
                   .restored_epoch = restored_epoch,
                   .restored_validation = restored_validation,
                   .lent_figures = lent_figures};
  state.micro_batches = sizes.found();
  state.scaler = scaler;
  if (const auto described = described_data()) state.data = text_of(*described);
  if (loop) {  // save() from a callback
    loop->add_to(state);
  } else if (pending) {
    state.plan = pending->plan;
    state.callbacks = pending->callbacks;
  } else {
    state.callbacks = states_of(options.callbacks);
  }
  return state;
}

void LearnerState::set_progress(TrainState state) {
  epochs_done = state.epochs_done;
  saves = state.saves;
  history = std::move(state.history);
  restored_epoch = state.restored_epoch;
  restored_validation = state.restored_validation;
  lent_figures = state.lent_figures;
  sizes.clear();
  sizes.add(state.micro_batches);
  if (scaler) scaler = state.scaler.value_or(GradScaler{});
  if (state.plan) pending = {std::move(*state.plan), std::move(state.callbacks)};
}

namespace {

std::string sampling_text(const LearnerOptions& options) {
  if (!options.class_sampling.weights.empty())
    return "classes " + config::flow_text(to_node(options.class_sampling));
  if (options.sample_weights.empty()) return options.sampling;
  return "weights " + content_hash(std::as_bytes(std::span(options.sample_weights)));
}

}  // namespace

SampleOrder LearnerState::sample_order() {
  return {.batch = options.batch,
          .samples = data.train->size(),
          .drop_last = drops_last(),
          .shuffle = options.shuffle,
          .seed = options.seed,
          .sampling = sampling_text(options),
          .group_by_length = options.group_by_length};
}

std::vector<NamedTensor> LearnerState::saved_model() const {
  std::vector<NamedTensor> state = stored_state(model);
  if (!loop || !loop->snapshot().has_buffers()) return state;
  const auto& copies = loop->snapshot().copies();  // of the buffers, which come last
  const size_t first = state.size() - copies.size();
  for (size_t i = 0; i < copies.size(); ++i) state[first + i].tensor = copies[i];
  return state;
}

namespace {

/// Returns in front of which names rank 0 saves the generators of another rank.
std::string prefix_of(int64_t rank) { return "rank" + std::to_string(rank) + '/'; }

std::vector<NamedTensor> rng_of(const LearnerState& state) {
  if (state.device.is_meta()) {  // a plan, which has their sizes alone
    std::vector<NamedTensor> states = rng_state(c10::kCPU);
    for (NamedTensor& one : states)
      one.tensor = at::empty_like(one.tensor, at::TensorOptions(c10::kMeta));
    return states;
  }
  if (!state.loop || !state.loop->snapshot().taken()) return rng_state(state.devices());
  const GeneratorScope now(state.devices());
  state.loop->snapshot().restore_generators();
  return rng_state(state.devices());
}

}  // namespace

std::vector<NamedTensor> LearnerState::saved_rng() const {
  std::vector<NamedTensor> own = rng_of(*this);
  if (!group()) return own;
  const auto all = group()->tensors(tensors_of(own));
  for (size_t rank = 1; rank < all.size(); ++rank)
    for (size_t i = 0; i < all[rank].size(); ++i)  // a host, then a card, of which each has its own
      own.push_back({prefix_of(static_cast<int64_t>(rank)) + (i == 0 ? "rng/cpu" : "rng/device"),
                     all[rank][i]});
  return own;
}

std::vector<NamedTensor> LearnerState::own_rng(const std::vector<NamedTensor>& saved) const {
  if (is_first_rank()) return saved;
  std::vector<NamedTensor> own;
  const std::string prefix = prefix_of(options.group->rank());
  for (const NamedTensor& one : saved)
    if (one.name.starts_with(prefix)) {
      const std::string name = one.name.substr(prefix.size());
      own.push_back({name == "rng/device" ? "rng/" + device.str() : name, one.tensor});
    }
  return own;
}

std::vector<NamedTensor> LearnerState::saved_gradients() const {
  std::vector<NamedTensor> saved;
  if (loop ? loop->is_finished() : !pending) return saved;
  for (const auto& parameter : model.parameters()) {
    const at::Tensor gradient =
        loop ? loop->earlier_gradient(parameter.tensor) : parameter.tensor.grad();
    if (gradient.defined()) saved.push_back({kGradient + parameter.name, gradient});
  }
  if (group() && shards_gradients()) return over_ranks(saved);
  return saved;
}

std::shared_ptr<void> LearnerState::whole_parameters() const {
  if (!loop || !loop->sharded()) return nullptr;
  return std::make_shared<parallel::ShardedExchange::Whole>(loop->sharded());
}

namespace {

/// Returns the sizes that an entry in the state of one parameter has for another one: they are the
/// parameter's, or it has a number for each block, or it does not depend on the parameter.
std::vector<int64_t> sizes_for(const at::Tensor& entry, const at::Tensor& of,
                               const at::Tensor& other) {
  const auto blocks = [](const at::Tensor& tensor) {
    return (tensor.numel() + kStateBlock - 1) / kStateBlock;
  };
  if (entry.sizes() == of.sizes()) return other.sizes().vec();
  if (entry.dim() == 1 && entry.size(0) == blocks(of)) return {blocks(other)};
  return entry.sizes().vec();
}

/// Holds a parameter, and its tensors in a state.
struct Entries {
  at::Tensor parameter{};
  std::vector<at::Tensor> tensors{};
};

/// An optimizer may treat matrices and large parameters apart.
std::pair<bool, int64_t> class_of(const at::Tensor& parameter) {
  return {parameter.dim() > 1, parameter.numel()};
}

}  // namespace

std::vector<std::vector<parallel::Group::Layout>> LearnerState::planned_over_ranks(
    const std::vector<NamedTensor>& own) const {
  std::vector<std::vector<parallel::Group::Layout>> all(static_cast<size_t>(group()->size()));
  const parallel::Shard owners = *shard();
  std::map<std::string, std::vector<at::Tensor>> by_name;
  for (const NamedTensor& one : own) {
    by_name[one.name.substr(one.name.find('/') + 1)].push_back(one.tensor);
    all[static_cast<size_t>(owners.rank)].push_back(
        {one.tensor.sizes().vec(), one.tensor.scalar_type()});
  }
  std::map<std::pair<bool, int64_t>, Entries> known;
  for (const Parameter& one : model.parameters())
    if (const auto found = by_name.find(one.name); found != by_name.end())
      known.try_emplace(class_of(one.tensor), Entries{one.tensor, found->second});
  if (known.empty()) return all;
  for (const Parameter& one : model.parameters()) {
    const int64_t owner = owners.owners.at(one.name);
    if (owner == owners.rank || !one.tensor.requires_grad()) continue;
    auto like = known.lower_bound(class_of(one.tensor));  // the next larger one, or the largest
    if (like == known.end() || like->first.first != (one.tensor.dim() > 1))
      like = like == known.begin() ? like : std::prev(like);
    for (const at::Tensor& entry : like->second.tensors)
      all[static_cast<size_t>(owner)].push_back(
          {sizes_for(entry, like->second.parameter, one.tensor), entry.scalar_type()});
  }
  return all;
}

std::vector<NamedTensor> LearnerState::over_ranks(const std::vector<NamedTensor>& own) const {
  if (group()->is_planned()) {
    std::vector<NamedTensor> whole;
    for (const auto& of_rank : group()->tensors(tensors_of(own), planned_over_ranks(own)))
      for (const at::Tensor& one : of_rank) whole.push_back({std::to_string(whole.size()), one});
    return whole;
  }
  std::string names;
  for (const NamedTensor& one : own) names += one.name + '\n';
  const auto all_names = group()->texts(names);
  const auto all = group()->tensors(tensors_of(own));
  std::vector<NamedTensor> whole;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    std::istringstream lines(all_names[rank]);
    size_t i = 0;
    for (std::string name; std::getline(lines, name);) whole.push_back({name, all[rank].at(i++)});
  }
  return whole;
}

std::vector<NamedTensor> LearnerState::saved_optimizer() const {
  if (!optimizer) return {};
  if (!group() || options.data_parallel.shard == "none") return optimizer->state();
  return over_ranks(optimizer->state());
}

checkpoint::Contents LearnerState::contents(const CopyTensors& copy) const {
  TrainState now = train_state();
  checkpoint::Contents all{
      .model = saved_model(), .optimizer = saved_optimizer(), .extra = saved_rng()};
  const auto append = [&](std::vector<NamedTensor> more) {
    all.extra.insert(all.extra.end(), std::make_move_iterator(more.begin()),
                     std::make_move_iterator(more.end()));
  };
  append(saved_gradients());
  if (copy && is_first_rank()) {
    copy("model", all.model);
    copy("optimizer", all.optimizer);
    copy("extra", all.extra);
    for (CallbackState& one : now.callbacks) copy(one.name, one.tensors);
  }
  StoredState state = stored(now);
  append(std::move(state.tensors));
  all.state = std::move(state.json);
  return all;
}

LearnerState::Gradients LearnerState::loaded_gradients(const std::vector<NamedTensor>& extra,
                                                       const std::string& path) const {
  const c10::AutoGradMode no_grad(false);
  const auto own = shards_gradients() ? shard() : std::nullopt;
  Gradients loaded;
  for (const auto& [name, tensor] : extra) {
    if (!name.starts_with(kGradient)) continue;
    const auto& all = model.parameters();
    const auto parameter = std::ranges::find(all, name.substr(kGradient.size()), &Parameter::name);
    if (parameter == all.end() || parameter->tensor.sizes() != tensor.sizes())
      throw FormatError("learner.load", path, name, "is the gradient of another model's parameter");
    if (own && !own->owns(parameter->name)) continue;
    at::Tensor gradient = at::empty_like(parameter->tensor);
    gradient.copy_(tensor);
    loaded.emplace_back(parameter->tensor, std::move(gradient));
  }
  return loaded;
}

}  // namespace tare
