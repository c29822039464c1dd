// Normalisations.
#include <ATen/Parallel.h>
#include <ATen/ceil_div.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <tuple>
#include <vector>

#include "tare/trace/blocks.h"
#include "tare/trace/dispatch.h"
#include "tare/trace/not_plannable.h"
#include "tare/trace/recording.h"

namespace tare::plan {
namespace {

using at::IntArrayRef;
using at::MemoryFormat;
using at::Tensor;

/// How the host's batch norm walks a tensor: channel by channel, or pixel by pixel.
enum class Walk { channels, pixels, strides };

bool is_channels_last(const Tensor& t) {
  return t.is_contiguous(MemoryFormat::ChannelsLast) ||
         t.is_contiguous(MemoryFormat::ChannelsLast3d);
}

Walk walk_of(const Tensor& t) {
  const bool one_pixel = t.numel() == t.size(0) * t.size(1);
  if (t.is_contiguous()) return one_pixel ? Walk::pixels : Walk::channels;
  return is_channels_last(t) ? Walk::pixels : Walk::strides;
}

void require_known(const char* op, const Tensor& input) {
  require_float(op, input);
  if (walk_of(input) == Walk::strides)
    throw NotPlannable(op, "is not known for an input with gaps between its elements",
                       "call contiguous() first");
}

/// Holds the host's scratch: values of each channel, `rows` times. A card has none.
c10::DataPtr hold_channels(const Tensor& input, int64_t rows = 1) {
  return hold_on_host(bytes_of(rows * input.size(1), input.scalar_type()));
}

/// Holds the partial sums of a card that are over one row of channels after the other: `values` of
/// each channel and block (flexible_launch_configs in ATen/native/cuda/Normalization.cuh).
void hold_partial_sums(const Tensor& input, int64_t values) {
  constexpr int64_t kWidest = 32, kEach = 16, kThreads = 512, kMostBlocks = 128, kFewBlocks = 8;
  const int64_t channels = input.size(1), rows = input.numel() / channels;
  const auto power = [](int64_t n) {
    return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(n)));
  };
  int64_t width = std::min(power(channels), kWidest);
  const int64_t height = std::min(power(at::ceil_div(rows, kEach)), kThreads / width);
  if (width * height != kThreads) width = std::min(power(channels), kThreads / height);
  const int64_t blocks = std::min(at::ceil_div(rows, height * kEach), kMostBlocks);
  if (blocks < kFewBlocks) return;
  const auto sums = hold(bytes_of(values * channels * blocks, accumulated(input))),
             semaphores = hold(bytes_of(at::ceil_div(channels, width), at::kInt));
}

using Normed = std::tuple<Tensor, Tensor, Tensor>;

Normed batch_norm(const Tensor& input, const std::optional<Tensor>&, const std::optional<Tensor>&,
                  const std::optional<Tensor>&, const std::optional<Tensor>&, bool training, double,
                  double) {
  require_known("aten::native_batch_norm", input);
  const Tensor output = at::empty_like(input, input.suggest_memory_format());
  const int64_t saved = training ? input.size(1) : 0;
  const Tensor mean = fresh_sums({saved}, input), deviation = fresh_sums({saved}, input);
  if (training && for_card() && input.dim() == 2) hold_partial_sums(input, 4);
  if (training) {
    const auto sum = hold_channels(input), squares = hold_channels(input);
    const auto partial =
        hold_channels(input, walk_of(input) == Walk::pixels ? at::get_num_threads() : 0);
  }
  const auto scale = hold_channels(input), shift = hold_channels(input);
  return {output, mean, deviation};
}

/// A card's cuDNN normalizes images that are trained on, with weights; LibTorch's own kernels do
/// everything else.
Normed card_batch_norm_backward(const Tensor& grad, const Tensor& input, bool has_weight,
                                bool training, const std::array<bool, 3>& mask) {
  const auto format = input.suggest_memory_format();
  const auto of_channels = [&] { return fresh_sums({input.size(1)}, input); };
  const auto of_input = [&] { return at::empty_like(input, format); };
  Normed result;
  auto& [grad_input, grad_weight, grad_bias] = result;
  const bool by_rows = input.dim() == 2, reduces = training || mask[1] || mask[2];
  if (!by_rows && (training || reduces)) {
    const auto copy = hold(training && has_weight ? copied_bytes(grad, format) : 0);
    if (mask[0]) grad_input = of_input();
    if (mask[1]) grad_weight = of_channels();
    if (mask[2]) grad_bias = of_channels();
    return result;
  }
  const Tensor deviation = training ? Tensor() : of_channels();
  Tensor sum, product;
  if (reduces) {
    if (mask[0]) sum = of_channels();
    if (mask[0]) product = of_channels();
    if (mask[1]) grad_weight = of_channels();
    if (mask[2]) grad_bias = of_channels();
    hold_partial_sums(input, 2);
  }
  if (mask[0]) grad_input = of_input();
  return result;
}

Normed batch_norm_backward(const Tensor& grad, const Tensor& input,
                           const std::optional<Tensor>& weight, const std::optional<Tensor>&,
                           const std::optional<Tensor>&, const std::optional<Tensor>&,
                           const std::optional<Tensor>&, bool training, double,
                           std::array<bool, 3> mask) {
  require_known("aten::native_batch_norm_backward", input);
  if (for_card())
    return card_batch_norm_backward(grad, input, weight && weight->defined(), training, mask);
  const auto format = input.suggest_memory_format();
  Normed result;
  auto& [grad_input, grad_weight, grad_bias] = result;
  if (mask[0]) grad_input = at::empty_like(input, format);
  if (mask[1]) grad_weight = fresh({input.size(1)}, input);
  if (mask[2]) grad_bias = fresh({input.size(1)}, input);
  if (walk_of(grad) != walk_of(input)) {
    const auto deviation = hold_channels(input);
    return result;
  }
  if (mask[0]) grad_input = at::empty_like(input, format);  // the host allocates it twice
  if (walk_of(input) == Walk::channels) return result;
  const auto deviation = hold_channels(input, training ? 0 : 1);
  const auto partial = hold_channels(input, int64_t{2} * at::get_num_threads());
  return result;
}

/// How many values are normalized together, and how often.
struct Rows {
  int64_t count = 0, width = 0;
};

Rows rows_of(const Tensor& input, IntArrayRef normalized) {
  const int64_t width = c10::multiply_integers(normalized);
  return {.count = width == 0 ? 0 : input.numel() / width, .width = width};
}

Normed layer_norm(const Tensor& input, IntArrayRef normalized, const std::optional<Tensor>&,
                  const std::optional<Tensor>&, double) {
  require_float("aten::native_layer_norm", input);
  const auto copy = hold_contiguous(input);
  const Tensor output = at::empty_like(input, MemoryFormat::Contiguous);
  std::vector<int64_t> each(input.sizes().begin(), input.sizes().end());
  std::fill(each.end() - static_cast<int64_t>(normalized.size()), each.end(), 1);
  const Tensor mean = fresh_sums(each, input);
  return {output, mean, fresh_sums(each, input)};
}

Normed layer_norm_backward(const Tensor& grad, const Tensor& input, IntArrayRef normalized,
                           const Tensor&, const Tensor&, const std::optional<Tensor>& weight,
                           const std::optional<Tensor>& bias, std::array<bool, 3> mask) {
  require_float("aten::native_layer_norm_backward", input);
  const auto copy = hold_contiguous(input);
  Normed result;
  auto& [grad_input, grad_weight, grad_bias] = result;
  if (mask[0]) grad_input = at::empty_like(input, MemoryFormat::Contiguous);
  if (mask[1]) grad_weight = at::empty_like(*weight, MemoryFormat::Contiguous);
  if (mask[2]) grad_bias = at::empty_like(*bias, MemoryFormat::Contiguous);
  const auto grad_copy = hold_contiguous(grad);
  // Each thread sums both gradients of its rows.
  if (mask[1] || mask[2])
    hold_on_host(bytes_of(int64_t{2} * at::get_num_threads() * rows_of(input, normalized).width,
                          input.scalar_type()))
        .clear();
  return result;
}

MemoryFormat group_norm_format(const Tensor& input) {
  return for_card() ? MemoryFormat::Contiguous : input.suggest_memory_format();
}

Normed group_norm(const Tensor& input, const std::optional<Tensor>& weight,
                  const std::optional<Tensor>& bias, int64_t samples, int64_t channels,
                  int64_t pixels, int64_t groups, double) {
  require_float("aten::native_group_norm", input);
  const auto format = group_norm_format(input);
  const auto copy = hold_contiguous(input, format);
  const Tensor output = at::empty_like(input, format);
  const Tensor mean = fresh({samples, groups}, input), deviation = fresh({samples, groups}, input);
  const int64_t bytes = bytes_of(samples * channels, accumulated(input));
  if (for_card()) {
    const bool scales = pixels > 1 && ((weight && weight->defined()) || (bias && bias->defined()));
    const auto scale = hold(scales ? bytes : 0), shift = hold(scales ? bytes : 0);
  } else if (format != MemoryFormat::Contiguous) {
    hold(2 * bytes).clear();
  }
  return {output, mean, deviation};
}

Normed group_norm_backward(const Tensor& grad, const Tensor& input, const Tensor&, const Tensor&,
                           const std::optional<Tensor>& weight, int64_t samples, int64_t channels,
                           int64_t pixels, int64_t groups, std::array<bool, 3> mask) {
  require_float("aten::native_group_norm_backward", input);
  const auto format = group_norm_format(input);
  const auto grad_copy = hold_contiguous(grad, format), copy = hold_contiguous(input, format);
  Normed result;
  auto& [grad_input, grad_weight, grad_bias] = result;
  if (mask[0]) grad_input = at::empty_like(input, format);
  if (mask[1]) grad_weight = at::empty_like(*weight, MemoryFormat::Contiguous);
  if (mask[2]) grad_bias = at::empty_like(*weight, MemoryFormat::Contiguous);
  const int64_t bytes = bytes_of(samples * channels, accumulated(input));
  const auto scale = hold(bytes), shift = hold(bytes);
  if (!for_card() || !mask[0]) return result;
  const int64_t of_groups = bytes_of(samples * groups, accumulated(input));
  const auto second = hold(of_groups), third = hold(of_groups);
  hold(pixels > 1 && weight && weight->defined() ? bytes : 0).clear();
  return result;
}

}  // namespace

void add_norm_kernels(Kernels& kernels) {
  kernels.add("aten::native_batch_norm", &batch_norm);
  kernels.add("aten::native_batch_norm_backward", &batch_norm_backward);
  kernels.add("aten::native_group_norm", &group_norm);
  kernels.add("aten::native_group_norm_backward", &group_norm_backward);
  kernels.add("aten::native_layer_norm", &layer_norm);
  kernels.add("aten::native_layer_norm_backward", &layer_norm_backward);
}

}  // namespace tare::plan
