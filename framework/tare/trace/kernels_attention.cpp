// Attention. The operator itself is composite and takes another path where a tensor is on the meta
// device; here it takes that of the host or, for a card, that of CUDA.
#include <ATen/Parallel.h>
#include <ATen/ceil_div.h>
#include <ATen/ops/_safe_softmax.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/dropout.h>
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

// ---- On a card, float32 attention takes LibTorch's memory-efficient kernels
// (aten/native/transformers/cuda/attention.cu and attention_backward.cu).

using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;

/// Returns the result, per query the logarithm of the sum of exponentials where a backward needs
/// it, and no state of the generator: it is on the host.
Four efficient(const Tensor& query, const Tensor&, const Tensor& value, const Mask&, bool with_sums,
               double, bool, std::optional<double>) {
  const int64_t batch = query.size(0), heads = query.size(1), time = query.size(2);
  constexpr int64_t kAlignment = 32;
  const int64_t sums = with_sums ? (time + kAlignment - 1) / kAlignment * kAlignment : 0;
  const Tensor result = by_time(query, batch, heads, time, value.size(3));
  return {result, fresh({batch, heads, sums}, query), Tensor(), Tensor()};
}

/// The bytes in which the blocks of one gradient of the queries are added up; as from Ampere on.
int64_t workspace_of(const Tensor& query) {
  constexpr int64_t kColumns = 64, kHeader = 4;
  const int64_t features = query.size(3), rows = features <= kColumns ? 64 : 128;
  const int64_t tiles = at::ceil_div(query.size(2), rows) * at::ceil_div(features, kColumns);
  return bytes_of(query.size(0) * query.size(1) * tiles * (rows * kColumns + kHeader), at::kFloat);
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
  const bool transposes = query.size(1) > 1 && query.size(2) > 1;
  c10::DataPtr product = hold(bytes_of(grad.numel(), at::kFloat));
  c10::DataPtr sums = hold(bytes_of(queries, at::kFloat));
  if (transposes) sums = hold(bytes_of(queries, at::kFloat));
  product.clear();
  const c10::DataPtr workspace = hold(workspace_of(query));
  sums.clear();
  return {of_query, of_key, of_value, Tensor()};
}

/// Whether a card takes its memory-efficient kernels; as from Ampere on.
bool efficient_takes(const Tensor& query, const Tensor& key, const Tensor& value, const Mask& mask,
                     bool grouped) {
  constexpr int64_t kAligned = 4;  // float32 of 16 bytes
  const auto fits = [](const Tensor& t) {
    return t.dim() == 4 && t.stride(3) == 1 && t.size(2) > 0 && t.size(3) % kAligned == 0 &&
           t.scalar_type() == at::kFloat;
  };
  if (grouped || !fits(query) || !fits(key) || !fits(value)) return false;
  if (mask && (mask->requires_grad() || (mask->dim() != 2 && mask->dim() != 4))) return false;
  return query.size(0) == key.size(0) && key.size(0) == value.size(0) &&
         query.size(1) == key.size(1) && key.size(1) == value.size(1);
}

/// A mask to be added whose rows begin at multiples of 8 elements.
Mask padded(Mask mask) {
  constexpr int64_t kAligned = 8;
  const int64_t keys = mask ? mask->size(-1) : 0, over = keys % kAligned;
  if (over == 0) return mask;
  return at::constant_pad_nd(*mask, {0, kAligned - over}).slice(-1, 0, keys);
}

Tensor card_attention(const Tensor& query, const Tensor& key, const Tensor& value, const Mask& mask,
                      double dropout, bool causal, std::optional<double> scale) {
  const Mask bias = four_dimensional(padded(additive(mask, query)), query, key);
  const bool with_sums = c10::GradMode::is_enabled() &&
                         (query.requires_grad() || key.requires_grad() || value.requires_grad());
  return std::get<0>(at::_scaled_dot_product_efficient_attention(query, key, value, bias, with_sums,
                                                                 dropout, causal, scale));
}

}  // namespace

Tensor planned_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                         const Mask& mask, double dropout, bool causal, std::optional<double> scale,
                         bool grouped) {
  if (for_card() && efficient_takes(query, key, value, mask, grouped))
    return card_attention(query, key, value, mask, dropout, causal, scale);
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
}

}  // namespace tare::plan
