// Normalisations.
#include <ATen/Parallel.h>
#include <ATen/ceil_div.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "tare/memory/libtorch.h"
#include "tare/trace/blocks.h"
#include "tare/trace/composites.h"
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

/// Whether LibTorch's kernels on a card walk a tensor pixel by pixel.
bool by_pixels_on_card(const Tensor& t) {
  return is_channels_last(t) || (t.is_contiguous() && t.stride(1) == 1);
}

/// Whether cuDNN normalizes on a card: images, with weights, but not in bfloat16. Its evaluation
/// saves nothing, and has a backward by LibTorch's kernels.
bool by_cudnn(const Tensor& input, bool has_weight) {
  return input.dim() > 2 && has_weight && input.scalar_type() != at::kBFloat16;
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

Normed batch_norm(const Tensor& input, const std::optional<Tensor>& weight,
                  const std::optional<Tensor>&, const std::optional<Tensor>&,
                  const std::optional<Tensor>&, bool training, double, double) {
  require_known("aten::native_batch_norm", input);
  const bool by_default = !for_card() && input.is_contiguous();  // of a single pixel too
  const Tensor output =
      at::empty_like(input, by_default ? MemoryFormat::Contiguous : input.suggest_memory_format());
  const bool by_libtorch = for_card() && !by_cudnn(input, weight && weight->defined());
  const int64_t saved = training || by_libtorch ? input.size(1) : 0;
  const Tensor mean = fresh_sums({saved}, input), deviation = fresh_sums({saved}, input);
  if (by_libtorch && training && by_pixels_on_card(input)) hold_partial_sums(input, 4);
  if (training) {
    const auto sum = hold_channels(input), squares = hold_channels(input);
    const auto partial =
        hold_channels(input, walk_of(input) == Walk::pixels ? at::get_num_threads() : 0);
  }
  const auto scale = hold_channels(input), shift = hold_channels(input);
  return {output, mean, deviation};
}

/// Whether the kernels of a card need no general iterator for both tensors.
bool alike_on_card(const Tensor& a, const Tensor& b) {
  const auto known = [](const Tensor& t) {
    return t.is_contiguous() || t.is_contiguous(MemoryFormat::ChannelsLast);
  };
  return known(a) && known(b) && by_pixels_on_card(a) == by_pixels_on_card(b);
}

/// Returns the gradients that the mask asks for, and frees the others.
Normed masked(const std::array<bool, 3>& mask, Normed all) {
  if (!mask[0]) std::get<0>(all) = Tensor();
  if (!mask[1]) std::get<1>(all) = Tensor();
  if (!mask[2]) std::get<2>(all) = Tensor();
  return all;
}

/// LibTorch's own kernels sum and scale at once where they walk channel by channel
/// (ATen/native/cuda/Normalization.cu).
Normed card_batch_norm_backward(const Tensor& grad, const Tensor& input, bool has_weight,
                                bool training, const std::array<bool, 3>& mask) {
  const auto format = input.suggest_memory_format();
  const auto of_channels = [&](bool wanted = true) {
    return wanted ? fresh_sums({input.size(1)}, input) : Tensor();
  };
  if (training && by_cudnn(input, has_weight)) {  // it makes every gradient, wanted or not
    const auto copy = hold_contiguous(grad, format);
    return masked(mask, {at::empty_like(input, format), of_channels(), of_channels()});
  }
  const bool reduces = training || mask[1] || mask[2], by_pixels = by_pixels_on_card(input);
  if (reduces && mask[0] && !by_pixels)
    return {at::empty_like(input, format), of_channels(mask[1]), of_channels(mask[2])};
  const Tensor deviation = of_channels(!training && by_cudnn(input, has_weight));
  Tensor sum, product, grad_input, grad_weight, grad_bias;
  if (reduces) {
    const bool all = by_pixels && by_pixels_on_card(grad);  // wanted or not
    sum = of_channels(all || mask[0]);
    product = of_channels(all || mask[0]);
    grad_weight = of_channels(all ? has_weight : mask[1]);
    grad_bias = of_channels(all ? has_weight : mask[2]);
    if (all) hold_partial_sums(input, 2);
  }
  if (mask[0] && training) {
    const Tensor one =
        !has_weight && !alike_on_card(input, grad) ? fresh_sums({}, input) : Tensor();
    grad_input = at::empty_like(input, format);
  } else if (mask[0]) {
    grad_input = fresh(input.sizes(), input);
  }
  return masked(mask, {std::move(grad_input), std::move(grad_weight), std::move(grad_bias)});
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
  if (walk_of(grad) == Walk::strides || grad.suggest_memory_format() != format) {
    const auto deviation = hold_channels(input);
    return result;
  }
  if (mask[0]) grad_input = at::empty_like(input, format);  // the host allocates it twice
  if (walk_of(input) == Walk::channels) return result;
  const auto ones = hold_channels(input, weight && weight->defined() ? 0 : 1);
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

/// Whether a card normalises images or volumes whose channels lie innermost as they are; those of
/// one pixel count as such.
bool channels_stay_innermost(const Tensor& input) {
  if (!libtorch::kGroupNormHasTwoMoreKernels || !for_card()) return false;
  return (input.dim() == 4 && input.is_contiguous(MemoryFormat::ChannelsLast)) ||
         (input.dim() == 5 && input.is_contiguous(MemoryFormat::ChannelsLast3d));
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
    const bool affine = (weight && weight->defined()) || (bias && bias->defined());
    const bool scales = channels_stay_innermost(input) || (pixels > 1 && affine);
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
  const bool innermost = channels_stay_innermost(input);
  const bool sums =
      !for_card() || innermost || pixels > 1 || !libtorch::kGroupNormHasTwoMoreKernels;
  const auto scale = hold(sums ? bytes : 0), shift = hold(sums ? bytes : 0);
  if (!for_card() || !mask[0]) return result;
  const int64_t of_groups = bytes_of(samples * groups, accumulated(input));
  const auto second = hold(of_groups), third = hold(of_groups);
  hold(!innermost && pixels > 1 && weight && weight->defined() ? bytes : 0).clear();
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
