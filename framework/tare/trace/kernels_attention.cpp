// Attention. The operator itself is composite and takes another path where a tensor is on the meta
// device; here it takes that of the host or, for a card, that of CUDA.
#include <ATen/Parallel.h>
#include <ATen/ceil_div.h>
#include <ATen/ops/_safe_softmax.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/dropout.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/scaled_dot_product_attention_native.h>
#include <ATen/ops/where.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "tare/trace/blocks.h"
#include "tare/trace/composites.h"
#include "tare/trace/dispatch.h"
#include "tare/trace/recording.h"

namespace tare::plan {
namespace {

using at::Tensor;
using Mask = std::optional<Tensor>;

/// Makes a tensor [batch, heads, time, features], with time and heads exchanged in memory.
Tensor by_time(const Tensor& like, int64_t batch, int64_t heads, int64_t time, int64_t features) {
  return fresh({batch, time, heads, features}, like).transpose(1, 2);
}

/// Makes a tensor without gaps whose dimensions have the memory order of `like`.
Tensor in_order_of(const Tensor& like, const std::vector<int64_t>& sizes) {
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    return like.stride(static_cast<int64_t>(a)) < like.stride(static_cast<int64_t>(b));
  });
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (const size_t dim : order) {
    strides[dim] = stride;
    stride *= std::max<int64_t>(1, sizes[dim]);
  }
  return at::empty_strided(sizes, strides, like.options());
}

/// The host works on blocks of queries and keys.
struct Blocks {
  int64_t queries = 0, keys = 0;
};

Blocks blocks_of(const Tensor& query, const Tensor& key) {
  const int64_t time = query.size(2);
  constexpr int64_t kLong = 768, kShort = 192;
  const int64_t queries = time >= kLong ? 256 : time >= kShort ? 64 : 32;
  return {.queries = std::min(queries, time), .keys = std::min<int64_t>(512, key.size(2))};
}

/// Holds the scratch of the host's threads; a card has none.
c10::DataPtr hold_per_thread(int64_t elements, const Tensor& like) {
  return hold_on_host(bytes_of(at::get_num_threads() * elements, like.scalar_type()));
}

/// Returns the result and, per query, the logarithm of the sum of exponentials.
std::tuple<Tensor, Tensor> flash(const Tensor& query, const Tensor& key, const Tensor& value,
                                 double, bool, const Mask&, std::optional<double>) {
  const int64_t batch = query.size(0), heads = query.size(1), time = query.size(2);
  const Tensor result = in_order_of(query, {batch, heads, time, value.size(3)});
  const Tensor sums = fresh({batch, time, heads}, query).transpose(1, 2);
  const auto [queries, keys] = blocks_of(query, key);
  hold_per_thread(queries * (keys + 2 + value.size(3)), query).clear();
  return {result, sums};
}

std::tuple<Tensor, Tensor, Tensor> flash_backward(const Tensor& grad, const Tensor& query,
                                                  const Tensor& key, const Tensor& value,
                                                  const Tensor&, const Tensor&, double, bool,
                                                  const Mask&, std::optional<double>) {
  const auto gradient_of = [&](const Tensor& t) {
    return by_time(query, t.size(0), t.size(1), t.size(2), t.size(3));
  };
  const Tensor of_query = gradient_of(query), of_key = gradient_of(key),
               of_value = gradient_of(value);
  const bool copies = !grad.transpose(1, 2).is_contiguous();
  const auto copy = hold(copies ? bytes_of(grad.numel(), grad.scalar_type()) : 0);
  const auto [queries, keys] = blocks_of(query, key);
  const auto scores = hold_per_thread(2 * queries * keys, query),
             sums = hold_per_thread(queries, query);
  return {of_query, of_key, of_value};
}

/// Whether the host takes its flash attention rather than single products and a softmax.
bool flash_takes(const Tensor& query, const Tensor& key, const Tensor& value, const Mask& mask,
                 double dropout, bool grouped) {
  const auto fits = [](const Tensor& t) {
    return t.dim() == 4 && t.stride(3) == 1 && t.size(2) > 0;
  };
  if (dropout != 0 || grouped || !fits(query) || !fits(key) || !fits(value)) return false;
  if (mask && (mask->requires_grad() || (mask->dim() != 2 && mask->dim() != 4))) return false;
  return query.size(0) == key.size(0) && key.size(0) == value.size(0) &&
         query.size(1) == key.size(1) && key.size(1) == value.size(1) &&
         query.size(3) == value.size(3);
}

/// Returns the mask to be added to the scores; a boolean one becomes 0 where true, else -infinity.
Mask additive(const Mask& mask, const Tensor& query) {
  if (!mask || mask->scalar_type() != at::kBool) return mask;
  const auto options = at::TensorOptions().dtype(query.scalar_type()).device(mask->device());
  const Tensor never = at::scalar_tensor(-std::numeric_limits<double>::infinity(), options);
  return at::where(*mask, 0.0, never);
}

Mask four_dimensional(const Mask& mask, const Tensor& query, const Tensor& key) {
  if (!mask) return mask;
  return mask->expand({query.size(0), query.size(1), query.size(2), key.size(2)});
}

Tensor boolean_causal(const Tensor& query, const Tensor& key) {
  return at::ones({query.size(2), key.size(2)}, query.options().dtype(at::kBool)).tril();
}

/// Computes attention by products and a softmax: like LibTorch's own, but for the mask, which the
/// host adds in place. The order of the locals is the one in which they die.
Tensor by_products(const Tensor& query, const Tensor& key, const Tensor& value, Mask mask,
                   double dropout, bool causal, std::optional<double> scale) {
  const double factor =
      std::sqrt(scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1)))));
  Tensor weights;
  Mask added = std::move(mask);
  const Tensor scaled = query.mul(factor);
  if (causal) {
    const Tensor before = boolean_causal(query, key);
    added = additive(before, query);
  }
  weights = at::matmul(scaled, key.transpose(-2, -1).mul(factor));
  weights.add_(*added);
  weights = at::_safe_softmax(weights, -1);
  if (dropout > 0) weights = at::dropout(weights, dropout, /*train=*/true);
  return at::matmul(weights, value);
}

// ---- On a card float32 attention takes LibTorch's memory-efficient kernels. 16-bit types take
// flash attention from Ampere on, and cuDNN's on Hopper and data-centre Blackwell
// (aten/native/transformers/cuda: sdp_utils.cpp, attention.cu, attention_backward.cu,
// flash_api.cpp).

constexpr int64_t kAmpere = 80, kAda = 89;  // compute capabilities

using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;

/// Returns the result, per query the logarithm of the sum of exponentials where a backward needs
/// it, and no state of the generator: it is on the host.
Four efficient(const Tensor& query, const Tensor&, const Tensor& value, const Mask&, bool with_sums,
               double, bool, std::optional<double>) {
  const int64_t batch = query.size(0), heads = query.size(1), time = query.size(2);
  constexpr int64_t kAlignment = 32;
  const int64_t sums = with_sums ? (time + kAlignment - 1) / kAlignment * kAlignment : 0;
  const Tensor result = by_time(query, batch, heads, time, value.size(3));
  const Tensor of_rows = fresh_sums({batch, heads, sums}, query);
  const bool adds_up = is_half(query.scalar_type()) && value.size(3) > 128;
  const auto added_up = hold(adds_up ? bytes_of(result.numel(), at::kFloat) : 0);
  return {result, of_rows, Tensor(), Tensor()};
}

int64_t rounded_up(int64_t value, int64_t multiple) {
  return at::ceil_div(value, multiple) * multiple;
}

/// The bytes in which the blocks of the gradients are added up: those of the queries, and of the
/// keys and values in 16-bit types with many features.
int64_t workspace_of(const Tensor& query, const Tensor& key) {
  constexpr int64_t kSmall = 64, kLarge = 128, kHeader = 4;
  const int64_t features = query.size(3);
  const int64_t capability = recorded_machine().capability;
  const bool half = is_half(query.scalar_type()), recent = capability >= kAmpere,
             is_small = capability > kAmpere && capability <= kAda;
  int64_t rows = kSmall, columns = kSmall, of_keys = 0;
  if (half && features > kLarge) {
    rows = kLarge;
    of_keys = 2 * rounded_up(key.size(2), kSmall) * rounded_up(features, kSmall);
  } else if (features > kSmall) {
    rows = half || recent ? kLarge : kSmall;
    columns = half && recent && !(is_small && features <= 96) ? kLarge : kSmall;
  }
  const int64_t tiles = at::ceil_div(query.size(2), rows) * at::ceil_div(features, columns);
  const int64_t of_queries = tiles * (rows * columns + kHeader);
  return bytes_of(query.size(0) * query.size(1) * (of_queries + of_keys), at::kFloat);
}

Four efficient_backward(const Tensor& grad, const Tensor& query, const Tensor& key,
                        const Tensor& value, const Tensor&, const Tensor&, const Tensor&,
                        const Tensor&, const Tensor&, double, std::array<bool, 4>, bool,
                        std::optional<double>) {
  const auto gradient_of = [&](const Tensor& t) {
    return by_time(query, t.size(0), t.size(1), t.size(2), t.size(3));
  };
  const auto copy = hold(grad.stride(3) == 1 ? 0 : bytes_of(grad.numel(), grad.scalar_type()));
  const Tensor of_query = gradient_of(query), of_key = gradient_of(key),
               of_value = gradient_of(value);
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

Tensor sums_of(const Tensor& query, at::IntArrayRef sizes) {
  return at::empty(sizes, query.options().dtype(at::kFloat));
}

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

Nine card_flash(const Tensor& query, const Tensor& key, const Tensor&, double dropout, bool, bool,
                std::optional<double>) {
  const Tensor result = like_by_time(query);
  const Tensor sums = sums_of(query, {query.size(0), query.size(1), query.size(2)});
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

Three card_flash_backward(const Tensor& grad, const Tensor& query, const Tensor& key,
                          const Tensor& value, const Tensor& result, const Tensor&, const Tensor&,
                          const Tensor&, int64_t, int64_t, double, bool, const Tensor&,
                          const Tensor&, std::optional<double>) {
  const auto contiguous = [](const Tensor& t) {
    return hold(t.transpose(1, 2).is_contiguous() ? 0 : bytes_of(t.numel(), t.scalar_type()));
  };
  const auto of_grad = contiguous(grad), of_result = contiguous(result);
  const Tensor of_query = like_by_time(query), of_key = like_by_time(key),
               of_value = like_by_time(value);
  const int64_t rows = query.size(0) * query.size(1) * rounded_up(query.size(2), 128);
  const auto of_sums = hold(bytes_of(rows, at::kFloat)),
             added_up = hold(bytes_of(rows * flash_features(query), at::kFloat));
  return {of_query, of_key, of_value};
}

/// Beyond what this counts, cuDNN takes a workspace that only a card knows.
Nine cudnn(const Tensor& query, const Tensor& key, const Tensor& value, const Mask&, bool with_sums,
           double, bool, bool, std::optional<double>) {
  const Tensor seed = at::empty({}, query.options().dtype(at::kLong)),
               offset = at::empty({}, query.options().dtype(at::kLong));
  const std::vector<int64_t> sizes{query.size(0), query.size(1), query.size(2), value.size(3)};
  const Tensor result = in_order_of(query, sizes);
  const Tensor sums =
      with_sums ? sums_of(query, {query.size(0), query.size(1), query.size(2), 1}) : Tensor();
  return {result, sums, Tensor(), Tensor(), query.size(2), key.size(2), seed, offset, Tensor()};
}

Three cudnn_backward(const Tensor&, const Tensor& query, const Tensor& key, const Tensor& value,
                     const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Mask&,
                     const Tensor&, const Tensor&, int64_t, int64_t, double, bool,
                     std::optional<double>) {
  const Tensor of_query = at::empty_like(query), of_key = at::empty_like(key);
  return {of_query, of_key, at::empty_like(value)};
}

bool needs_gradients(const Tensor& query, const Tensor& key, const Tensor& value) {
  return c10::GradMode::is_enabled() &&
         (query.requires_grad() || key.requires_grad() || value.requires_grad());
}

/// Whether the backward of flash attention takes more shared memory than such a card has: one of
/// 8.6, 8.7, 8.9 and 12.
bool lacks_memory(int64_t capability, int64_t features, double dropout, bool backward) {
  const bool is_small = (capability > kAmpere && capability <= kAda) || capability / 10 == 12;
  return is_small && backward && features > 192 && (features <= 224 || dropout > 0);
}

enum class CardKernel { none, efficient, flash, cudnn };

/// Returns the fused kernel that a card takes.
CardKernel card_kernel(const Tensor& query, const Tensor& key, const Tensor& value,
                       const Mask& mask, double dropout, bool grouped) {
  constexpr int64_t kMostFeatures = 256;
  const int64_t capability = recorded_machine().capability, features = query.size(-1);
  const auto type = query.scalar_type();
  const bool half = is_half(type);
  const int64_t of_float = capability >= kAmpere ? 4 : 1, aligned = half ? 8 : of_float;
  const auto fits = [&](const Tensor& t) {
    return t.dim() == 4 && t.stride(3) == 1 && t.size(2) > 0 && t.scalar_type() == type &&
           (half || type == at::kFloat);
  };
  if (grouped || !fits(query) || !fits(key) || !fits(value)) return CardKernel::none;
  if (mask && (mask->requires_grad() || (mask->dim() != 2 && mask->dim() != 4)))
    return CardKernel::none;
  if (query.size(0) != key.size(0) || key.size(0) != value.size(0) ||
      query.size(1) != key.size(1) || key.size(1) != value.size(1))
    return CardKernel::none;
  const bool square = features == value.size(3), is_aligned = features % aligned == 0;
  const bool prefers_cudnn = capability / 10 == 9 || capability / 10 == 10;
  if (half && prefers_cudnn && square && is_aligned && features <= kMostFeatures)
    return CardKernel::cudnn;
  if (half && capability >= kAmpere && !mask && square && features <= kMostFeatures &&
      !lacks_memory(capability, features, dropout, needs_gradients(query, key, value)))
    return CardKernel::flash;
  if (!is_aligned || value.size(3) % aligned != 0) return CardKernel::none;
  if (type == at::kBFloat16 && capability < kAmpere) return CardKernel::none;
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
Tensor card_flash_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                            double dropout, bool causal, std::optional<double> scale) {
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

Tensor card_attention(CardKernel kernel, const Tensor& query, const Tensor& key,
                      const Tensor& value, const Mask& mask, double dropout, bool causal,
                      std::optional<double> scale) {
  if (kernel == CardKernel::flash)
    return card_flash_attention(query, key, value, dropout, causal, scale);
  const Mask bias = four_dimensional(padded(additive(mask, query)), query, key);
  const bool with_sums = needs_gradients(query, key, value);
  if (kernel == CardKernel::cudnn)
    return std::get<0>(at::_scaled_dot_product_cudnn_attention(
        query, key, value, bias, with_sums, dropout, causal, /*return_debug_mask=*/false, scale));
  return std::get<0>(at::_scaled_dot_product_efficient_attention(query, key, value, bias, with_sums,
                                                                 dropout, causal, scale));
}

}  // namespace

Tensor planned_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                         const Mask& mask, double dropout, bool causal, std::optional<double> scale,
                         bool grouped) {
  const auto kernel =
      for_card() ? card_kernel(query, key, value, mask, dropout, grouped) : CardKernel::none;
  if (kernel != CardKernel::none)
    return card_attention(kernel, query, key, value, mask, dropout, causal, scale);
  if (for_card() && is_half(query.scalar_type()))
    throw NotPlannable("attention of a 16-bit type for which the card has no fused kernel",
                       "takes temporary memory that is not known", "plan in float32");
  const bool masked = mask || causal;
  const bool flash = flash_takes(query, key, value, mask, dropout, grouped);
  if (!flash && (!masked || grouped || scale.value_or(1) < 0))
    return at::native::scaled_dot_product_attention(query, key, value, mask, dropout, causal, scale,
                                                    grouped);
  require_float("aten::scaled_dot_product_attention", query);
  const Mask added = additive(mask, query);
  if (!flash) return by_products(query, key, value, added, dropout, causal, scale);
  return std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(
      query, key, value, dropout, causal, four_dimensional(added, query, key), scale));
}

void add_attention_kernels(Kernels& kernels) {
  kernels.add("aten::_scaled_dot_product_flash_attention_for_cpu", &flash);
  kernels.add("aten::_scaled_dot_product_flash_attention_for_cpu_backward", &flash_backward);
  kernels.add("aten::_scaled_dot_product_efficient_attention", &efficient);
  kernels.add("aten::_scaled_dot_product_efficient_attention_backward", &efficient_backward);
  kernels.add("aten::_scaled_dot_product_flash_attention", &card_flash);
  kernels.add("aten::_scaled_dot_product_flash_attention_backward", &card_flash_backward);
  kernels.add("aten::_scaled_dot_product_cudnn_attention", &cudnn);
  kernels.add("aten::_scaled_dot_product_cudnn_attention_backward", &cudnn_backward);
}

}  // namespace tare::plan
