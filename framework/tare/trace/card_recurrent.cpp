// Allocates what LibTorch allocates for cuDNN's recurrent layers (ATen/native/cudnn/RNN.cpp), in
// its order.
#include "tare/trace/card_recurrent.h"

#include <ATen/ops/_cudnn_rnn.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/strides.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "tare/trace/blocks.h"
#include "tare/trace/card_workspace.h"
#include "tare/trace/dispatch.h"
#include "tare/trace/dropout_state.h"
#include "tare/trace/not_plannable.h"
#include "tare/trace/recording.h"

namespace tare::plan {
namespace {

using at::IntArrayRef;
using at::Tensor;
using at::TensorList;
using Optional = std::optional<Tensor>;

bool is_there(const Optional& tensor) { return tensor && tensor->defined(); }

/// Returns the view of a part of a block that holds weights or their gradients.
Tensor part_of(const Tensor& block, int64_t begin, IntArrayRef sizes) {
  return at::empty({0}, block.options())
      .set_(block.storage(), begin, sizes, c10::contiguous_strides(sizes));
}

/// Returns the elements of the block of all weights, as cuDNN lays them out.
int64_t block_elements(CardRecurrent call) {
  call.steps = call.samples = 0;
  const auto known = recurrent_memory(call);
  return known ? known->weights / static_cast<int64_t>(c10::elementSize(call.type))
               : call.weights();
}

/// Returns the block in which the weights lie already; undefined: there is none.
Tensor block_of(TensorList weights, int64_t elements) {
  const auto storage_of = [](const Tensor& weight) {
    return weight.storage().unsafeGetStorageImpl();
  };
  const Tensor& first = weights.front();
  const bool in_one = std::ranges::all_of(
      weights, [&](const Tensor& weight) { return storage_of(weight) == storage_of(first); });
  const auto bytes = static_cast<int64_t>(first.storage().nbytes());
  if (!in_one || bytes < bytes_of(elements, first.scalar_type())) return {};
  return at::empty({0}, first.options()).set_(first.storage(), 0, {elements}, {1});
}

/// Describes the operands of cuDNN's calls. They are [steps, samples, features].
struct Operands {
  CardRecurrent call;
  bool batch_first = false;

  [[nodiscard]] Tensor by_time(const Tensor& tensor) const {
    return batch_first ? tensor.transpose(0, 1) : tensor;
  }
  [[nodiscard]] std::vector<int64_t> state_sizes(int64_t features) const {
    return {call.layers * call.directions(), call.samples, features};
  }
  [[nodiscard]] Tensor output(const Tensor& like) const {
    return fresh({call.steps, call.samples, call.directions() * call.features()}, like);
  }
  [[nodiscard]] Tensor hidden(const Tensor& like) const {
    return fresh(state_sizes(call.features()), like);
  }
  [[nodiscard]] Tensor cell(const Tensor& like) const {
    return fresh(state_sizes(call.hidden), like);
  }
};

Operands operands_of(const Tensor& input, int64_t mode, int64_t hidden, int64_t projected,
                     int64_t layers, bool batch_first, double dropout, bool train,
                     bool bidirectional, IntArrayRef batch_sizes) {
  if (!batch_sizes.empty())
    throw NotPlannable("a packed sequence", "has lengths that shapes do not show",
                       "plan with padded sequences");
  return {.call = {.mode = static_cast<RecurrentMode>(mode),
                   .inputs = input.size(-1),
                   .hidden = hidden,
                   .layers = layers,
                   .projected = projected,
                   .bidirectional = bidirectional,
                   .train = train,
                   .dropout = dropout,
                   .type = input.scalar_type(),
                   .steps = input.size(batch_first ? 1 : 0),
                   .samples = input.size(batch_first ? 0 : 1)},
          .batch_first = batch_first};
}

/// Returns what cuDNN takes for a call; none where that is not known.
RecurrentMemory memory_of(const CardRecurrent& call) {
  if (const auto known = recurrent_memory(call)) return *known;
  meta_mark(kUnknownRecurrent);
  return {};
}

CudnnResults forward(const Tensor& input, TensorList, int64_t, const Optional& given,
                     const Tensor& hidden, const Optional& cell, int64_t mode, int64_t hidden_size,
                     int64_t projected, int64_t layers, bool batch_first, double dropout,
                     bool train, bool bidirectional, IntArrayRef batch_sizes, const Optional&) {
  const Operands operands = operands_of(input, mode, hidden_size, projected, layers, batch_first,
                                        dropout, train, bidirectional, batch_sizes);
  const RecurrentMemory memory = memory_of(operands.call);
  const Tensor dense = operands.by_time(input).contiguous();
  Tensor output = operands.output(input);
  const Tensor last = operands.hidden(hidden);
  const Tensor last_cell = is_there(cell) ? operands.cell(*cell) : fresh({0}, hidden);
  const Tensor block = is_there(given) ? *given : fresh({block_elements(operands.call)}, input);
  const c10::DataPtr workspace = hold(memory.forward);
  const Tensor reserve = at::empty({train ? memory.reserve : 0}, input.options().dtype(at::kByte));
  if (batch_first) output.transpose_(0, 1);
  return {output, last, last_cell, reserve, block};
}

/// Computes the gradients of the input and of the states at first.
RecurrentResult backward_input(const Operands& operands, int64_t workspace, const Tensor& input,
                               const Tensor& hidden, const Optional& cell, const Tensor& grad,
                               const Tensor& grad_hidden, const Tensor& grad_cell) {
  const Tensor sequence = operands.by_time(input);
  const Tensor dense = sequence.contiguous();
  const Tensor dense_grad = operands.by_time(grad).contiguous();
  Tensor of_input = fresh(sequence.sizes(), input);
  const Tensor dense_hidden = grad_hidden.contiguous();
  const Tensor dense_cell = grad_cell.defined() ? grad_cell.contiguous() : Tensor();
  const Tensor of_hidden = operands.hidden(hidden);
  const Tensor of_cell = is_there(cell) ? operands.cell(*cell) : Tensor();
  const c10::DataPtr held = hold(workspace);
  if (operands.batch_first) of_input.transpose_(0, 1);
  return {of_input, of_hidden, of_cell};
}

/// Computes the gradients of the weights, which are parts of one block; without biases, copies of
/// such parts.
std::vector<Tensor> backward_weights(const Operands& operands, int64_t workspace,
                                     const Tensor& input, TensorList weights, int64_t each,
                                     const Tensor& block) {
  const Tensor dense = operands.by_time(input).contiguous();
  const Tensor of_block = fresh(block.sizes(), block);
  const c10::DataPtr held = hold(workspace);
  const bool has_biases = each == (operands.call.projected > 0 ? 5 : 4);
  std::vector<Tensor> grads;
  int64_t begin = 0;
  for (const Tensor& weight : weights) {
    grads.push_back(has_biases ? part_of(of_block, begin, weight.sizes())
                               : fresh(weight.sizes(), weight));
    begin += weight.numel();
  }
  return grads;
}

std::tuple<Tensor, Tensor, Tensor, std::vector<Tensor>> backward(
    const Tensor& input, TensorList weights, int64_t each, const Tensor& block,
    const Tensor& hidden, const Optional& cell, const Tensor& output, const Optional& grad,
    const Optional& grad_hidden, const Optional& grad_cell, int64_t mode, int64_t hidden_size,
    int64_t projected, int64_t layers, bool batch_first, double dropout, bool train,
    bool bidirectional, IntArrayRef batch_sizes, const Optional&, const Tensor&,
    std::array<bool, 4> mask) {
  if (!is_there(grad) && !is_there(grad_hidden) && !is_there(grad_cell))
    return {Tensor(), Tensor(), Tensor(), std::vector<Tensor>(weights.size())};
  const auto given_or_zeros = [](const Optional& given, const Tensor& like) {
    return is_there(given) ? *given : at::zeros_like(like, at::MemoryFormat::Contiguous);
  };
  const Operands operands = operands_of(input, mode, hidden_size, projected, layers, batch_first,
                                        dropout, train, bidirectional, batch_sizes);
  const int64_t workspace = memory_of(operands.call).backward;
  const Tensor of_output = given_or_zeros(grad, output);
  const Tensor of_hidden = given_or_zeros(grad_hidden, hidden);
  const Tensor of_cell = is_there(cell) ? given_or_zeros(grad_cell, *cell) : Tensor();
  auto [of_input, of_first, of_first_cell] =
      backward_input(operands, workspace, input, hidden, cell, of_output, of_hidden, of_cell);
  std::vector<Tensor> of_weights;
  if (mask[3]) of_weights = backward_weights(operands, workspace, input, weights, each, block);
  return {of_input, of_first, of_first_cell, std::move(of_weights)};
}

/// Lays the weights in one block, one after the other.
Tensor flatten(TensorList weights, int64_t, int64_t inputs, int64_t mode, int64_t hidden,
               int64_t projected, int64_t layers, bool, bool bidirectional) {
  const CardRecurrent call{.mode = static_cast<RecurrentMode>(mode),
                           .inputs = inputs,
                           .hidden = hidden,
                           .layers = layers,
                           .projected = projected,
                           .bidirectional = bidirectional,
                           .type = weights.front().scalar_type()};
  const Tensor block = fresh({block_elements(call)}, weights.front());
  int64_t begin = 0;
  for (const Tensor& weight : weights) {
    const std::vector<int64_t> sizes = weight.sizes().vec();
    weight.set_(block.storage(), begin, sizes, c10::contiguous_strides(sizes));
    begin += weight.numel();
  }
  return block;
}

/// Holds the state of cuDNN's dropout, which the process keeps from its first use on; before, a
/// number for it is drawn on the card.
void keep_dropout_state(const CardRecurrent& call) {
  c10::DataPtr& state = kept_dropout_state();
  if (!call.drops() || state.get_context()) return;
  hold(bytes_of(1, at::kLong)).clear();
  state = hold(memory_of(call).dropout_state);
}

}  // namespace

RecurrentResult card_recurrent(RecurrentMode mode, const Tensor& input, const Tensor& hidden,
                               const Tensor& cell, TensorList weights, bool has_biases,
                               int64_t layers, double dropout, bool train, bool bidirectional,
                               bool batch_first) {
  if (!cudnn_takes_recurrent(input))
    throw NotPlannable("a recurrent layer that cuDNN does not compute",
                       "takes temporary memory that is not known",
                       "plan in float32, and with cuDNN");
  const int64_t features = hidden.size(2), hidden_size = cell.defined() ? cell.size(2) : features;
  const int64_t projected = hidden_size == features ? 0 : features;
  const Operands operands = operands_of(input, static_cast<int64_t>(mode), hidden_size, projected,
                                        layers, batch_first, dropout, train, bidirectional, {});
  CardRecurrent of_weights = operands.call;
  of_weights.type = weights.front().scalar_type();
  const Tensor block = block_of(weights, block_elements(of_weights));
  keep_dropout_state(operands.call);
  const int64_t each = (has_biases ? 4 : 2) + (projected > 0 ? 1 : 0);
  auto [output, last, last_cell, reserve, used] = at::_cudnn_rnn(
      input, weights, each, block, hidden, cell, static_cast<int64_t>(mode), hidden_size, projected,
      layers, batch_first, dropout, train, bidirectional, {}, std::nullopt);
  return {output, last, last_cell};
}

CudnnResults cast_recurrent(const Tensor& input, TensorList weights, int64_t each,
                            const Optional& block, const Tensor& hidden, const Optional& cell,
                            int64_t mode, int64_t hidden_size, int64_t projected, int64_t layers,
                            bool batch_first, double dropout, bool train, bool bidirectional,
                            IntArrayRef batch_sizes, const Optional& dropout_state) {
  const auto cast = [](const Tensor& tensor) {
    return tensor.defined() && tensor.scalar_type() != at::kDouble ? tensor.to(at::kHalf) : tensor;
  };
  std::vector<Tensor> cast_weights = weights.vec();
  Optional cast_block = block;
  const auto type = weights.front().scalar_type();
  if (type != at::kHalf && type != at::kDouble) {
    CardRecurrent call = operands_of(input, mode, hidden_size, projected, layers, batch_first,
                                     dropout, train, bidirectional, batch_sizes)
                             .call;
    call.type = at::kHalf;
    cast_block = at::zeros({block_elements(call)}, weights.front().options().dtype(at::kHalf));
    int64_t begin = 0;
    for (Tensor& weight : cast_weights) {
      const Tensor column = part_of(*cast_block, begin, {weight.numel(), 1});
      begin += weight.numel();
      column.copy_(weight.view_as(column));
      weight = column;
    }
  }
  const Tensor cast_cell = cast(cell.value_or(Tensor()));  // as GCC evaluates arguments: from last
  const Tensor cast_hidden = cast(hidden), cast_input = cast(input);
  return at::_cudnn_rnn(cast_input, cast_weights, each, cast_block, cast_hidden, cast_cell, mode,
                        hidden_size, projected, layers, batch_first, dropout, train, bidirectional,
                        batch_sizes, dropout_state);
}

void add_card_recurrent_kernels(Kernels& kernels) {
  kernels.add("aten::_cudnn_rnn", &forward);
  kernels.add("aten::_cudnn_rnn_backward", &backward);
  kernels.add("aten::_cudnn_rnn_flatten_weight", &flatten);
}

}  // namespace tare::plan
