// Attention on a card. In float32 it takes LibTorch's memory-efficient kernels. 16-bit types take
// flash attention from Ampere on, and cuDNN's on Hopper and data-centre Blackwell
// (aten/native/transformers/cuda: sdp_utils.cpp, attention.cu, attention_backward.cu,
// flash_api.cpp).
#include "tare/trace/card_attention.h"

#include <ATen/ceil_div.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <vector>

#include "tare/memory/compute_capability.h"
#include "tare/memory/libtorch.h"
#include "tare/trace/blocks.h"
#include "tare/trace/card_workspace.h"
#include "tare/trace/deterministic.h"
#include "tare/trace/recorded_step.h"
#include "tare/trace/recording.h"

namespace tare::plan {
namespace {

using at::Tensor;

constexpr int64_t kMostFeatures = 256;  // of a head

int64_t rounded_up(int64_t value, int64_t multiple) {
  return at::ceil_div(value, multiple) * multiple;
}

/// Whether a card of 8.6, 8.7 or 8.9 has less shared memory than others since Ampere.
bool has_little_memory(int64_t capability) {
  return capability > memory::kAmpere && capability <= memory::kAda;
}

using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;

/// Returns the result, per query the logarithm of the sum of exponentials where a backward needs
/// it, and the state of the generator. With dropout LibTorch holds that state in the host's memory,
/// but for a step that is recorded.
Four efficient(const Tensor& query, const Tensor&, const Tensor& value, const Mask&, bool with_sums,
               double dropout, bool, std::optional<double>) {
  const int64_t batch = query.size(0), heads = query.size(1), time = query.size(2);
  Tensor seed, offset;
  if (dropout > 0 ? records_step() : libtorch::kAttentionHasSeeds) {
    seed = at::empty({}, query.options().dtype(at::kLong));
    offset = at::empty_like(seed);
  }
  const Tensor result = by_time(query, {batch, heads, time, value.size(3)});
  const Tensor sums = fresh_sums({batch, heads, with_sums ? rounded_up(time, 32) : 0}, query);
  const bool adds_up = is_half(query.scalar_type()) && std::max(query.size(3), value.size(3)) > 128;
  const auto added_up = hold(adds_up ? bytes_of(result.numel(), at::kFloat) : 0);
  return {result, sums, seed, offset};
}

/// The bytes in which the blocks of the gradients are added up: those of the queries, and of the
/// keys and values in 16-bit types with many features.
int64_t workspace_of(const Tensor& query, const Tensor& key) {
  constexpr int64_t kSmall = 64, kLarge = 128, kHeader = 4;
  const int64_t features = query.size(3);
  const int64_t capability = recorded_machine().capability;
  const bool half = is_half(query.scalar_type()), recent = capability >= memory::kAmpere;
  int64_t rows = kSmall, columns = kSmall, of_keys = 0;
  if (half && features > kLarge) {
    rows = kLarge;
    of_keys = 2 * rounded_up(key.size(2), kSmall) * rounded_up(features, kSmall);
  } else if (features > kSmall) {
    rows = half || recent ? kLarge : kSmall;
    columns =
        half && recent && !(has_little_memory(capability) && features <= 96) ? kLarge : kSmall;
  }
  const int64_t tiles = at::ceil_div(query.size(2), rows) * at::ceil_div(features, columns);
  const int64_t of_queries = tiles * (rows * columns + kHeader);
  return bytes_of(query.size(0) * query.size(1) * (of_queries + of_keys), at::kFloat);
}

Four efficient_backward(const Tensor& grad, const Tensor& query, const Tensor& key,
                        const Tensor& value, const Tensor&, const Tensor&, const Tensor&,
                        const Tensor&, const Tensor&, double, std::array<bool, 4>, bool,
                        std::optional<double>) {
  const auto copy = hold(grad.stride(3) == 1 ? 0 : bytes_of(grad.numel(), grad.scalar_type()));
  const Tensor of_query = by_time(query, query.sizes()), of_key = by_time(query, key.sizes()),
               of_value = by_time(query, value.sizes());
  const int64_t queries = query.size(0) * query.size(1) * query.size(2);
  const bool half = is_half(query.scalar_type());  // then the kernel multiplies and adds up itself
  const bool transposes = !half && query.size(1) > 1 && query.size(2) > 1;
  c10::DataPtr product = hold(half ? 0 : bytes_of(grad.numel(), at::kFloat));
  c10::DataPtr sums = hold(bytes_of(queries, at::kFloat));
  if (transposes) sums = hold(bytes_of(queries, at::kFloat));
  product.clear();
  const c10::DataPtr workspace = hold(workspace_of(query, key));
  sums.clear();
  return {of_query, of_key, of_value, Tensor()};
}

/// Both fused kernels of 16-bit types give the result, the sums, the lengths of nested tensors, and
/// the state of the generator.
using Nine = std::tuple<Tensor, Tensor, Tensor, Tensor, int64_t, int64_t, Tensor, Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

/// Returns the like of a tensor [batch, heads, time, features] that a kernel sees as [batch, time,
/// heads, features].
Tensor like_by_time(const Tensor& tensor) {
  return at::empty_like(tensor.transpose(1, 2)).transpose(1, 2);
}

/// Returns how many keys a block of flash attention takes.
int64_t key_columns(int64_t features) {
  if (features <= 64) return 256;
  return features <= 128 ? 128 : 64;
}

/// Returns in how many parts flash attention divides the keys, so that a card has enough to do: the
/// fewest with at least 85 % of the best use of its multiprocessors (num_splits_heuristic in
/// flash_api.cpp).
int64_t key_splits(const Tensor& query, const Tensor& key) {
  constexpr int64_t kRows = 64, kMost = 128;
  const int64_t blocks = query.size(0) * query.size(1) * at::ceil_div(query.size(2), kRows);
  const int64_t key_blocks = at::ceil_div(key.size(2), key_columns(query.size(3)));
  const int64_t at_once = 2 * recorded_machine().multiprocessors;
  if (static_cast<double>(blocks) >= 0.8 * static_cast<double>(at_once)) return 1;
  const auto use_with = [&](int64_t splits) {
    if (splits > 1 && at::ceil_div(key_blocks, splits) == at::ceil_div(key_blocks, splits - 1))
      return 0.0F;  // as many blocks for each as with one part less
    const float waves = static_cast<float>(blocks * splits) / static_cast<float>(at_once);
    return waves / std::ceil(waves);
  };
  const int64_t most = std::min({kMost, at_once, key_blocks});
  float best = 0;
  for (int64_t splits = 1; splits <= most; ++splits) best = std::max(best, use_with(splits));
  for (int64_t splits = 1; splits <= most; ++splits)
    if (const float use = use_with(splits); use > 0 && use >= 0.85F * best) return splits;
  return 1;
}

/// The features that flash attention computes with.
int64_t flash_features(const Tensor& query) {
  return rounded_up(query.size(3), query.size(3) <= 128 ? 32 : 64);
}

Nine flash(const Tensor& query, const Tensor& key, const Tensor&, double dropout, bool, bool,
           std::optional<double>) {
  const Tensor result = like_by_time(query);
  const Tensor sums = fresh_sums({query.size(0), query.size(1), query.size(2)}, query);
  const int64_t splits = dropout > 0 ? 1 : key_splits(query, key);
  const int64_t parts = splits > 1 ? splits * sums.numel() : 0;
  const auto sums_of_parts = hold(bytes_of(parts, at::kFloat)),
             results_of_parts = hold(bytes_of(parts * flash_features(query), at::kFloat));
  const auto state_options = query.options().dtype(at::kUInt64);
  Tensor state = at::empty({2}, state_options);
  const Tensor unused = at::empty({}, state_options);
  if (dropout > 0) state = at::empty({2}, state_options);
  return {result, sums, Tensor(), Tensor(), query.size(2), key.size(2), state, unused, Tensor()};
}

Three flash_backward(const Tensor& grad, const Tensor& query, const Tensor& key,
                     const Tensor& value, const Tensor& result, const Tensor&, const Tensor&,
                     const Tensor&, int64_t, int64_t, double, bool, const Tensor&, const Tensor&,
                     std::optional<double>) {
  const auto contiguous = [](const Tensor& t) {
    return hold(t.transpose(1, 2).is_contiguous() ? 0 : bytes_of(t.numel(), t.scalar_type()));
  };
  const auto of_grad = contiguous(grad), of_result = contiguous(result);
  const Tensor of_query = like_by_time(query), of_key = like_by_time(key),
               of_value = like_by_time(value);
  const int64_t heads = query.size(0) * query.size(1),
                rows = heads * rounded_up(query.size(2), 128);
  const int64_t wanted = at::ceil_div(recorded_machine().multiprocessors, heads);
  const int64_t parts =
      libtorch::kFlashAddsUpInParts && repeats_bits() ? std::max<int64_t>(wanted, 1) : 1;
  const auto of_sums = hold(bytes_of(rows, at::kFloat)),
             added_up = hold(bytes_of(parts * rows * flash_features(query), at::kFloat));
  return {of_query, of_key, of_value};
}

CardAttention call_of(const Tensor& query, const Tensor& key, const Tensor& value, const Mask& mask,
                      bool with_sums, double dropout, bool causal) {
  return {.query = Layout::of(query),
          .key = Layout::of(key),
          .value = Layout::of(value),
          .mask = mask ? Layout::of(*mask) : Layout{},
          .with_sums = with_sums,
          .causal = causal,
          .dropout = dropout};
}

Nine cudnn(const Tensor& query, const Tensor& key, const Tensor& value, const Mask& mask,
           bool with_sums, double dropout, bool causal, bool, std::optional<double>) {
  const Tensor seed = at::empty({}, query.options().dtype(at::kLong)),
               offset = at::empty({}, query.options().dtype(at::kLong));
  const std::vector<int64_t> sizes{query.size(0), query.size(1), query.size(2), value.size(3)};
  const Tensor result = in_order_of(query, sizes);
  const Tensor sums =
      with_sums ? fresh_sums({query.size(0), query.size(1), query.size(2), 1}, query) : Tensor();
  hold_workspace(call_of(query, key, value, mask, with_sums, dropout, causal), 0).clear();
  return {result, sums, Tensor(), Tensor(), query.size(2), key.size(2), seed, offset, Tensor()};
}

/// In one block with the workspace of cuDNN's library, its frontend, which is a part of LibTorch,
/// adds up a number for each query and the gradient of the queries in float32; not the latter for
/// 256 features on Blackwell (cudnn_frontend: scaled_dot_product_flash_attention.h).
Three cudnn_backward(const Tensor& grad, const Tensor& query, const Tensor& key,
                     const Tensor& value, const Tensor&, const Tensor&, const Tensor&,
                     const Tensor&, const Mask& mask, const Tensor&, const Tensor&, int64_t,
                     int64_t, double dropout, bool causal, std::optional<double>) {
  const Tensor of_query = at::empty_like(query), of_key = at::empty_like(key),
               of_value = at::empty_like(value);
  const bool copies = grad.stride(3) != 1;
  const auto copy = hold(copies ? bytes_of(grad.numel(), grad.scalar_type()) : 0);
  CardAttention call = call_of(query, key, value, mask && mask->defined() ? mask : Mask(),
                               /*with_sums=*/true, dropout, causal);
  call.grad = Layout::of(copies ? fresh(grad.sizes(), grad) : grad);
  const int64_t queries = query.size(0) * query.size(1) * query.size(2);
  const bool adds_up =
      recorded_machine().capability < memory::kBlackwell || query.size(3) < kMostFeatures;
  const int64_t numbers = queries * (adds_up ? query.size(3) + 1 : 1);
  hold_workspace(call, bytes_of(numbers, at::kFloat)).clear();
  return {of_query, of_key, of_value};
}

bool needs_gradients(const Tensor& query, const Tensor& key, const Tensor& value) {
  return c10::GradMode::is_enabled() &&
         (query.requires_grad() || key.requires_grad() || value.requires_grad());
}

/// Whether the backward of flash attention takes more shared memory than such a card has: one of
/// 8.6, 8.7, 8.9 and 12.
bool lacks_memory(int64_t capability, int64_t features, double dropout, bool backward) {
  const bool is_small = has_little_memory(capability) || capability / 10 == 12;
  return is_small && backward && features > 192 && (features <= 224 || dropout > 0);
}

/// Whether cuDNN's attention takes heads of so many features.
bool cudnn_takes_heads(int64_t features, int64_t of_value, bool trained) {
  constexpr int64_t kMostOfAll = 128;
  const int64_t most = std::max(features, of_value);
  const bool is_latent = features == 192 && of_value == 128;  // as DeepSeek's attention has them
  if (most <= kMostOfAll || is_latent) return true;
  if (most > kMostFeatures) return false;
  if (!libtorch::kCudnnTakesLargeHeads) return recorded_machine().capability == memory::kHopper;
  return !trained || (features == kMostFeatures && of_value == kMostFeatures);
}

/// Whether cuDNN's attention, which Hopper and data-centre Blackwell prefer for 16-bit types, takes
/// the operands (check_cudnn_tensor_shapes and others in sdp_utils.cpp).
bool cudnn_takes(const Tensor& query, const Tensor& key, const Tensor& value, double dropout) {
  constexpr int64_t kAligned = 8;
  constexpr double kSteps = 16;  // of the probability
  const int64_t generation = recorded_machine().capability / 10;
  const int64_t features = query.size(3), of_value = value.size(3);
  if (generation != 9 && generation != 10) return false;
  if (features % kAligned != 0 || of_value % kAligned != 0) return false;
  if (!cudnn_takes_heads(features, of_value, needs_gradients(query, key, value))) return false;
  if (key.size(2) == 1 || (dropout != 0 && query.size(2) == 1)) return false;
  if (libtorch::kCudnnDropsInSixteenths && dropout * kSteps != std::floor(dropout * kSteps))
    return false;
  return !repeats_bits();
}

enum class CardKernel { none, efficient, flash, cudnn };

/// Returns the fused kernel that a card takes.
CardKernel card_kernel(const Tensor& query, const Tensor& key, const Tensor& value,
                       const Mask& mask, double dropout, bool grouped) {
  const int64_t capability = recorded_machine().capability, features = query.size(-1);
  const auto type = query.scalar_type();
  const bool half = is_half(type);
  const int64_t of_float = capability >= memory::kAmpere ? 4 : 1, aligned = half ? 8 : of_float;
  if (grouped || !can_be_fused(query, key, value, mask)) return CardKernel::none;
  if ((!half && type != at::kFloat) || key.scalar_type() != type || value.scalar_type() != type)
    return CardKernel::none;
  const bool square = features == value.size(3), is_aligned = features % aligned == 0;
  if (half && cudnn_takes(query, key, value, dropout)) return CardKernel::cudnn;
  if (half && capability >= memory::kAmpere && !mask && square && features <= kMostFeatures &&
      !lacks_memory(capability, features, dropout, needs_gradients(query, key, value)))
    return CardKernel::flash;
  if (!is_aligned || value.size(3) % aligned != 0) return CardKernel::none;
  if (type == at::kBFloat16 && capability < memory::kAmpere) return CardKernel::none;
  return CardKernel::efficient;
}

/// A mask to be added whose rows begin at multiples of 8 elements.
Mask padded(Mask mask) {
  constexpr int64_t kAligned = 8;
  const int64_t keys = mask ? mask->size(-1) : 0, over = keys % kAligned;
  if (over == 0) return mask;
  return at::constant_pad_nd(*mask, {0, kAligned - over}).slice(-1, 0, keys);
}

/// Flash attention takes numbers of features that are multiples of 8.
Tensor flash_attention(const Tensor& query, const Tensor& key, const Tensor& value, double dropout,
                       bool causal, std::optional<double> scale) {
  constexpr int64_t kAligned = 8;
  const int64_t features = query.size(3), over = features % kAligned;
  const auto padded_features = [&](const Tensor& t) {
    return over == 0 ? t : at::constant_pad_nd(t, {0, kAligned - over});
  };
  const Tensor result = std::get<0>(at::_scaled_dot_product_flash_attention(
      padded_features(query), padded_features(key), padded_features(value), dropout, causal,
      /*return_debug_mask=*/false, scale));
  return over == 0 ? result : result.slice(-1, 0, features);
}

Tensor attention_by(CardKernel kernel, const Tensor& query, const Tensor& key, const Tensor& value,
                    const Mask& mask, double dropout, bool causal, std::optional<double> scale) {
  if (kernel == CardKernel::flash)
    return flash_attention(query, key, value, dropout, causal, scale);
  const bool with_sums = needs_gradients(query, key, value);
  const Mask added = additive(mask, query);
  if (kernel == CardKernel::cudnn)
    return std::get<0>(at::_scaled_dot_product_cudnn_attention(
        query, key, value, four_dimensional(added, query, key), with_sums, dropout, causal,
        /*return_debug_mask=*/false, scale));
  const Mask bias = four_dimensional(padded(added), query, key);
  return std::get<0>(at::_scaled_dot_product_efficient_attention(query, key, value, bias, with_sums,
                                                                 dropout, causal, scale));
}

}  // namespace

std::optional<Tensor> card_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                     const Mask& mask, double dropout, bool causal,
                                     std::optional<double> scale, bool grouped) {
  if (dropout > 0) note_random_numbers();
  const CardKernel kernel = card_kernel(query, key, value, mask, dropout, grouped);
  if (kernel != CardKernel::none)
    return attention_by(kernel, query, key, value, mask, dropout, causal, scale);
  if (is_half(query.scalar_type()))
    throw NotPlannable("attention of a 16-bit type for which the card has no fused kernel",
                       "takes temporary memory that is not known", "plan in float32");
  return std::nullopt;
}

void add_card_attention_kernels(Kernels& kernels) {
  kernels.add("aten::_scaled_dot_product_efficient_attention", &efficient);
  kernels.add("aten::_scaled_dot_product_efficient_attention_backward", &efficient_backward);
  kernels.add("aten::_scaled_dot_product_flash_attention", &flash);
  kernels.add("aten::_scaled_dot_product_flash_attention_backward", &flash_backward);
  kernels.add("aten::_scaled_dot_product_cudnn_attention", &cudnn);
  kernels.add("aten::_scaled_dot_product_cudnn_attention_backward", &cudnn_backward);
}

}  // namespace tare::plan
