// Normalisations.
#include <ATen/Parallel.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <array>
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
  return hold(for_card() ? 0 : bytes_of(rows * input.size(1), input.scalar_type()));
}

using Normed = std::tuple<Tensor, Tensor, Tensor>;

Normed batch_norm(const Tensor& input, const std::optional<Tensor>&, const std::optional<Tensor>&,
                  const std::optional<Tensor>&, const std::optional<Tensor>&, bool training, double,
                  double) {
  require_known("aten::native_batch_norm", input);
  const Tensor output = at::empty_like(input, input.suggest_memory_format());
  const int64_t saved = training ? input.size(1) : 0;
  const Tensor mean = fresh({saved}, input), deviation = fresh({saved}, input);
  if (training) {
    const auto sum = hold_channels(input), squares = hold_channels(input);
    const auto partial =
        hold_channels(input, walk_of(input) == Walk::pixels ? at::get_num_threads() : 0);
  }
  const auto scale = hold_channels(input), shift = hold_channels(input);
  return {output, mean, deviation};
}

Normed batch_norm_backward(const Tensor& grad, const Tensor& input, const std::optional<Tensor>&,
                           const std::optional<Tensor>&, const std::optional<Tensor>&,
                           const std::optional<Tensor>&, const std::optional<Tensor>&,
                           bool training, double, std::array<bool, 3> mask) {
  require_known("aten::native_batch_norm_backward", input);
  const auto format = input.suggest_memory_format();
  Normed result;
  auto& [grad_input, grad_weight, grad_bias] = result;
  if (mask[0]) grad_input = at::empty_like(input, format);
  if (mask[1]) grad_weight = fresh({input.size(1)}, input);
  if (mask[2]) grad_bias = fresh({input.size(1)}, input);
  if (for_card()) return result;
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
  const Tensor mean = fresh(each, input);
  return {output, mean, fresh(each, input)};
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
  if ((mask[1] || mask[2]) && !for_card())
    hold(bytes_of(int64_t{2} * at::get_num_threads() * rows_of(input, normalized).width,
                  input.scalar_type()))
        .clear();
  return result;
}

Normed group_norm(const Tensor& input, const std::optional<Tensor>&, const std::optional<Tensor>&,
                  int64_t samples, int64_t channels, int64_t, int64_t groups, double) {
  require_float("aten::native_group_norm", input);
  const auto format = input.suggest_memory_format();
  const auto copy = hold_contiguous(input, format);
  const Tensor output = at::empty_like(input, format);
  const Tensor mean = fresh({samples, groups}, input), deviation = fresh({samples, groups}, input);
  if (format != MemoryFormat::Contiguous && !for_card())
    hold(bytes_of(2 * samples * channels, input.scalar_type())).clear();
  return {output, mean, deviation};
}

Normed group_norm_backward(const Tensor& grad, const Tensor& input, const Tensor&, const Tensor&,
                           const std::optional<Tensor>& weight, int64_t samples, int64_t channels,
                           int64_t, int64_t, std::array<bool, 3> mask) {
  require_float("aten::native_group_norm_backward", input);
  const auto format = input.suggest_memory_format();
  const auto grad_copy = hold_contiguous(grad, format), copy = hold_contiguous(input, format);
  Normed result;
  auto& [grad_input, grad_weight, grad_bias] = result;
  if (mask[0]) grad_input = at::empty_like(input, format);
  if (mask[1]) grad_weight = at::empty_like(*weight, MemoryFormat::Contiguous);
  if (mask[2]) grad_bias = at::empty_like(*weight, MemoryFormat::Contiguous);
  const int64_t bytes = bytes_of(samples * channels, input.scalar_type());
  const auto scale = hold(bytes), shift = hold(bytes);
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
