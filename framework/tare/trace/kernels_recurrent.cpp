// oneDNN's LSTM layer. It keeps to itself how its scratch is laid out, as for convolutions, so a
// short layer is run on the host once (measurements.h). Each buffer there is a row for each step of
// each sample, rounded up to whole pages: so what a layer takes grows evenly between sizes that
// leave the same remainder of a page, and not between others.
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/mkldnn_rnn_layer.h>
#include <ATen/ops/mkldnn_rnn_layer_backward.h>
#include <ATen/ops/zeros.h>

#include <array>
#include <numeric>
#include <optional>
#include <tuple>

#include "tare/trace/card_recurrent.h"
#include "tare/trace/composites.h"
#include "tare/trace/dispatch.h"
#include "tare/trace/measurements.h"
#include "tare/trace/not_plannable.h"
#include "tare/trace/recording.h"

namespace tare::plan {
namespace {

using at::IntArrayRef;
using at::Tensor;

constexpr int64_t kPage = 4096;
constexpr int64_t kPaddedRow = 64;  // rows are a multiple of this, or of the hidden state's bytes
constexpr int64_t kManySamples = 128;                // from here on oneDNN multiplies step by step
constexpr int64_t kMostElements = int64_t{1} << 28;  // in scratch that is tried

enum class Grad : uint8_t { none, dense, with_gaps };

/// Whether the operator was called for the backward is in the gradients.
struct Layer {
  int64_t steps = 0, samples = 0, inputs = 0, hidden = 0;
  bool has_biases = true, reverse = false;
  bool needs_grad = false;      ///< forward
  bool one_state = false;       ///< backward: hidden and cell state at first are in one storage
  std::array<Grad, 3> grads{};  ///< of output, hidden and cell state; all none: forward

  [[nodiscard]] bool backward() const { return grads != std::array<Grad, 3>{}; }
};

Tensor zeros(IntArrayRef sizes) { return at::zeros(sizes, at::TensorOptions(at::kFloat)); }

std::optional<Tensor> make(Grad grad, IntArrayRef sizes) {
  if (grad == Grad::none) return std::nullopt;
  return grad == Grad::dense ? zeros(sizes) : zeros({1}).expand(sizes);
}

/// Throws NotPlannable rather than to take long, or much memory.
void require_small(const Layer& layer) {
  if (layer.steps * layer.samples * (layer.inputs + 16 * layer.hidden) > kMostElements)
    throw NotPlannable("aten::lstm",
                       "would have to be tried with " + std::to_string(layer.steps) + " steps of " +
                           std::to_string(layer.samples) + " samples",
                       "plan a batch that is a multiple of 64");
}

AllocationTrace measure(const Layer& layer) {
  require_small(layer);
  const OnTheHost on_the_host;
  const int64_t hidden = layer.hidden;
  const Tensor input = zeros({layer.steps, layer.samples, layer.inputs});
  const Tensor weight = zeros({4 * hidden, layer.inputs}),
               hidden_weight = zeros({4 * hidden, hidden});
  const Tensor bias = layer.has_biases ? zeros({4 * hidden}) : weight;
  const Tensor hidden_bias = layer.has_biases ? bias : hidden_weight;
  const Tensor state = zeros({layer.samples, hidden});
  const Tensor cell = layer.one_state ? state : zeros({layer.samples, hidden});
  const auto forward = [&] {
    return at::mkldnn_rnn_layer(input, weight, hidden_weight, bias, hidden_bias, state, cell,
                                layer.reverse, {}, kLstm, hidden, 1, layer.has_biases, false, false,
                                true);
  };
  if (!layer.backward()) {
    const at::AutoGradMode mode(layer.needs_grad);
    return record([&] {
      auto [a, b, c, d] = forward();
      return std::vector<Tensor>{a, b, c, d};
    });
  }
  Tensor output, last, last_cell, workspace;
  {
    const at::AutoGradMode mode(true);
    std::tie(output, last, last_cell, workspace) = forward();
  }
  const auto grad = make(layer.grads[0], output.sizes());
  const auto grad_hidden = make(layer.grads[1], state.sizes());
  const auto grad_cell = make(layer.grads[2], state.sizes());
  return record([&] {
    auto [a, b, c, d, e, f, g] = at::mkldnn_rnn_layer_backward(
        input, weight, hidden_weight, bias, hidden_bias, state, cell, output, last, last_cell, grad,
        grad_hidden, grad_cell, layer.reverse, kLstm, hidden, 1, layer.has_biases, true, false, {},
        false, workspace);
    return std::vector<Tensor>{a, b, c, d, e, f, g};
  });
}

/// Returns everything that a layer's allocations depend on; starts as no convolution's key does.
std::vector<int64_t> key_of(const Layer& layer) {
  std::vector<int64_t> key{2, layer.steps, layer.samples, layer.inputs, layer.hidden};
  key.insert(key.end(), {layer.has_biases, layer.reverse, layer.needs_grad, layer.one_state,
                         at::get_num_threads()});
  for (const Grad grad : layer.grads) key.push_back(static_cast<int64_t>(grad));
  return key;
}

/// Returns `of(n)`, or predicts it from two smaller sizes that leave the same remainder and are at
/// least `least`.
template <class Of>
AllocationTrace evenly(int64_t n, int64_t period, int64_t least, const Of& of) {
  if (n <= least + period) return of(n);
  const int64_t low = (n - least) % period + least, high = low + period;
  if (n <= high) return of(n);
  const AllocationTrace first = of(low), second = of(high);
  if (!same_steps(first, second))
    throw NotPlannable("aten::lstm",
                       "allocates differently for " + std::to_string(low) + " and " +
                           std::to_string(high) + " samples or steps",
                       "plan by a probe");
  return extrapolate(first, low, second, high, n);
}

AllocationTrace profile(const Layer& layer) {
  const int64_t row = std::gcd(kPaddedRow, 4 * layer.hidden);
  return evenly(layer.samples, kPage / row, kManySamples, [&](int64_t samples) {
    const int64_t period = kPage / std::gcd(kPage, row * samples);
    return evenly(layer.steps, period, 2, [&](int64_t steps) {
      Layer smaller = layer;
      smaller.samples = samples;
      smaller.steps = steps;
      return measurements().of(key_of(smaller), [&] { return measure(smaller); });
    });
  });
}

/// Returns the results of a layer, which alone outlive it.
std::vector<Tensor> results_of(const Layer& layer) {
  std::vector<c10::DataPtr> held;
  return play(profile(layer), held);
}

Layer layer_of(const Tensor& input, const Tensor& weight, const Tensor& hidden_weight, bool reverse,
               bool has_biases) {
  if (!input.is_contiguous() || !weight.is_contiguous() || !hidden_weight.is_contiguous())
    throw NotPlannable("aten::lstm", "is not known for weights with gaps between their elements",
                       "call contiguous() first");
  return {.steps = input.size(0),
          .samples = input.size(1),
          .inputs = input.size(2),
          .hidden = hidden_weight.size(1),
          .has_biases = has_biases,
          .reverse = reverse};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> forward(const Tensor& input, const Tensor& weight,
                                                   const Tensor& hidden_weight, const Tensor&,
                                                   const Tensor&, const Tensor&, const Tensor&,
                                                   bool reverse, IntArrayRef, int64_t, int64_t,
                                                   int64_t, bool has_biases, bool, bool, bool) {
  Layer layer = layer_of(input, weight, hidden_weight, reverse, has_biases);
  layer.needs_grad = at::GradMode::is_enabled();
  const auto results = results_of(layer);
  return {results[0], results[1], results[2], results[3]};
}

Grad grad_of(const std::optional<Tensor>& grad) {
  if (!grad || !grad->defined()) return Grad::none;
  return grad->is_contiguous() ? Grad::dense : Grad::with_gaps;
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> backward(
    const Tensor& input, const Tensor& weight, const Tensor& hidden_weight, const Tensor&,
    const Tensor&, const Tensor& state, const Tensor& cell, const Tensor&, const Tensor&,
    const Tensor&, const std::optional<Tensor>& grad, const std::optional<Tensor>& grad_hidden,
    const std::optional<Tensor>& grad_cell, bool reverse, int64_t, int64_t, int64_t,
    bool has_biases, bool, bool, IntArrayRef, bool, const Tensor&) {
  Layer layer = layer_of(input, weight, hidden_weight, reverse, has_biases);
  layer.one_state = state.storage().unsafeGetStorageImpl() == cell.storage().unsafeGetStorageImpl();
  layer.grads = {grad_of(grad), grad_of(grad_hidden), grad_of(grad_cell)};
  if (!layer.backward()) return {};
  const auto r = results_of(layer);
  return {r[0], r[1], r[2], r[3], r[4], r[5], r[6]};
}

}  // namespace

void add_recurrent_kernels(Kernels& kernels) {
  kernels.add("aten::mkldnn_rnn_layer", &forward);
  kernels.add("aten::mkldnn_rnn_layer_backward", &backward);
  add_card_recurrent_kernels(kernels);
}

}  // namespace tare::plan
