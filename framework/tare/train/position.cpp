// Where a Learner is in its training, to and from a checkpoint.
#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <iterator>
#include <span>

#include "tare/base/content_hash.h"
#include "tare/base/error.h"
#include "tare/checkpoint/checkpoint.h"
#include "tare/config/node.h"
#include "tare/model/stored.h"
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
  if (!loop || !loop->snapshot().taken()) return state;
  const auto& copies = loop->snapshot().copies();  // of the buffers, which come last
  const size_t first = state.size() - copies.size();
  for (size_t i = 0; i < copies.size(); ++i) state[first + i].tensor = copies[i];
  return state;
}

std::vector<NamedTensor> LearnerState::saved_rng() const {
  if (!loop || !loop->snapshot().taken()) return rng_state(device);
  const GeneratorScope now(device);
  loop->snapshot().restore_generators();
  return rng_state(device);
}

std::vector<NamedTensor> LearnerState::saved_gradients() const {
  std::vector<NamedTensor> saved;
  if (loop ? loop->is_finished() : !pending) return saved;
  for (const auto& parameter : model.parameters()) {
    const at::Tensor gradient =
        loop ? loop->earlier_gradient(parameter.tensor) : parameter.tensor.grad();
    if (gradient.defined()) saved.push_back({kGradient + parameter.name, gradient});
  }
  return saved;
}

checkpoint::Contents LearnerState::contents(const CopyTensors& copy) const {
  TrainState now = train_state();
  checkpoint::Contents all{.model = saved_model(),
                           .optimizer = optimizer ? optimizer->state() : std::vector<NamedTensor>{},
                           .extra = saved_rng()};
  const auto append = [&](std::vector<NamedTensor> more) {
    all.extra.insert(all.extra.end(), std::make_move_iterator(more.begin()),
                     std::make_move_iterator(more.end()));
  };
  append(saved_gradients());
  if (copy) {
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
  Gradients loaded;
  for (const auto& [name, tensor] : extra) {
    if (!name.starts_with(kGradient)) continue;
    const auto& all = model.parameters();
    const auto parameter = std::ranges::find(all, name.substr(kGradient.size()), &Parameter::name);
    if (parameter == all.end() || parameter->tensor.sizes() != tensor.sizes())
      throw FormatError("learner.load", path, name, "is the gradient of another model's parameter");
    at::Tensor gradient = at::empty_like(parameter->tensor);
    gradient.copy_(tensor);
    loaded.emplace_back(parameter->tensor, std::move(gradient));
  }
  return loaded;
}

}  // namespace tare
